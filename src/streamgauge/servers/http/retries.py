"""Idempotency keys (draft-ietf-httpapi-idempotency-key-header): a key belongs to an identity, an operation and a body.

The same key of the same identity with another operation or body is refused; another identity's key is independent.
"""

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable
from hashlib import sha256
from typing import Final, Generic, NamedTuple, TypeVar

LONGEST_KEY: Final = 200
"""Characters of an Idempotency-Key."""

UNKNOWN_DIGEST: Final = b""
"""The digest of a key whose request is unknown: the next request with that key is taken for the same one."""

Value = TypeVar("Value")


class KeyReuseError(ValueError):
    """A key that was used for another request; the sentence says so."""


class KeyBusyError(RuntimeError):
    """A key whose request is still under way; the sentence says to retry later."""


class BadKeyError(ValueError):
    """An invalid Idempotency-Key; the sentence says how long a key may be."""


class RetryKey(NamedTuple):
    """A key: the ``owner`` is an identity (``access.identity``), the ``digest`` is of the operation and the body."""

    owner: str
    name: str
    digest: bytes


def request_digest(*parts: bytes) -> bytes:
    """SHA-256 of the parts of a request, each with its length, so that ("ab", "c") and ("a", "bc") differ."""
    return sha256(b"".join([b"%d:%b" % (len(part), part) for part in parts])).digest()


def read_key(text: str | None, owner: str, *parts: bytes) -> RetryKey | None:
    """The key of a request, ``None`` when the request has none; BadKeyError."""
    if text is None:
        return None
    if not 0 < len(text) <= LONGEST_KEY or not text.isprintable():
        raise BadKeyError(f"an Idempotency-Key has 1 to {LONGEST_KEY} printable characters")
    return RetryKey(owner, text, request_digest(*parts))


class RetryMemory(Generic[Value]):
    """Results of requests by key: the last ``limit`` of each owner, so that no owner displaces another's keys.

    >>> memory = RetryMemory[int](1)
    >>> memory.remember(RetryKey("a", "k", b"1"), 7)
    []
    >>> memory.known(RetryKey("a", "k", b"1")), memory.known(RetryKey("b", "k", b"2"))
    (7, None)
    >>> memory.remember(RetryKey("a", "l", b"1"), 8)
    [7]
    """

    def __init__(self, limit: int, known: Iterable[tuple[RetryKey, Value]] = ()) -> None:
        self._limit = limit
        self._owners: dict[str, OrderedDict[str, tuple[bytes, Value]]] = {}
        for key, value in known:
            self._of(key.owner)[key.name] = key.digest, value

    def __len__(self) -> int:
        """The number of remembered keys of all owners."""
        return sum(map(len, self._owners.values()))

    def known(self, key: RetryKey | None) -> Value | None:
        """The result of the request with this key, ``None`` for a new key; KeyReuseError if the request differs."""
        entry = None if key is None else self._of(key.owner).get(key.name)
        if key is None or entry is None:
            return None
        digest, value = entry
        # From the first repetition on the key is bound to that request like any other.
        if digest == UNKNOWN_DIGEST:
            self._of(key.owner)[key.name] = key.digest, value
        elif digest != key.digest:
            raise KeyReuseError(
                f"the Idempotency-Key {key.name!r} was used for another request: nothing was changed, use a new key"
            )
        return value

    def holds(self, key: RetryKey | None) -> bool:
        """Whether a key of this name and owner was used."""
        return key is not None and key.name in self._of(key.owner)

    def remember(self, key: RetryKey, value: Value) -> list[Value]:
        """Store the result of a request; returns the results of this owner's oldest keys, which are forgotten."""
        own = self._of(key.owner)
        # A known name keeps its place in the order, so a key that is stored again does not outlive newer ones.
        own[key.name] = key.digest, value
        # `range` of a negative number is empty, which is the usual case.
        return [own.popitem(last=False)[1][1] for _ in range(len(own) - self._limit)]

    def forget(self, key: RetryKey) -> None:
        """Forget a key, because its request had no effect."""
        self._of(key.owner).pop(key.name, None)

    def _of(self, owner: str) -> OrderedDict[str, tuple[bytes, Value]]:
        return self._owners.setdefault(owner, OrderedDict())


class Once(Generic[Value]):
    """Runs a request once per key and repeats its result when the request is sent again; for one event loop.

    A failed request runs again the next time. The last ``limit`` keys of each owner are remembered.
    """

    def __init__(self, limit: int, known: Iterable[tuple[RetryKey, Value]] = ()) -> None:
        # A list that is still empty marks a request under way, which cannot be told from a new one by its result.
        self._memory = RetryMemory[list[Value]](limit, [(key, [value]) for key, value in known])

    async def __call__(self, key: RetryKey | None, do: Callable[[], Awaitable[Value]]) -> Value:
        """The result of ``do``, or of the first request with this key. KeyReuseError, KeyBusyError while it runs."""
        if key is None:
            return await do()
        known = self._memory.known(key)
        if known is not None:
            if not known:
                raise KeyBusyError(f"the request with the Idempotency-Key {key.name!r} is under way: come again")
            return known[0]
        # Remembered before the request runs, so that a copy that arrives meanwhile gets KeyBusyError.
        done: list[Value] = []
        self._memory.remember(key, done)
        try:
            done.append(await do())
        finally:
            if not done:
                self._memory.forget(key)
        return done[0]
