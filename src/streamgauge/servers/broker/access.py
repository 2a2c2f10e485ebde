"""Permissions: which operations a token may do, on which channels."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Final

from streamgauge.model.phrases import offered
from streamgauge.servers.http.access import OPEN, TokenError, Tokens, identity

OPERATIONS: Final = ("publish", "delete", "query", "createChannel", "deleteChannel", "subscribe", "unsubscribe")
_ON_FACTS: Final = frozenset(("publish", "delete", "query"))


class AccessError(PermissionError):
    """A token without a permission; the sentence says which."""


@dataclass(frozen=True, slots=True)
class Grant:
    """A token, its operations, and patterns (``news-*``) of the channels that it may use."""

    token: str
    operations: frozenset[str] = frozenset(OPERATIONS)
    channels: tuple[str, ...] = ("*",)

    def covers(self, operation: str, channel: str) -> bool:
        """Whether the token permits an operation on a channel."""
        # `fnmatchcase`, because `fnmatch` folds case on some systems, and names of channels are told apart by theirs.
        return operation in self.operations and any(fnmatchcase(channel, pattern) for pattern in self.channels)


def read_grants(lines: Iterable[str]) -> list[Grant]:
    """Grants, one per line: ``TOKEN``, ``TOKEN publish,delete`` or ``TOKEN subscribe,unsubscribe news-* weather``.

    Empty lines and lines that begin with # are ignored. TokenError names the line.
    """
    grants = []
    for number, line in enumerate(lines, 1):
        words = line.split()
        if words and not line.lstrip().startswith("#"):
            grants.append(_grant(words, number))
    return grants


def _grant(words: Sequence[str], number: int) -> Grant:
    operations = frozenset(words[1].split(",")) if len(words) > 1 else frozenset(OPERATIONS)
    if unknown := sorted(operations.difference(OPERATIONS)):
        raise TokenError(f"line {number}: there is no operation {unknown[0]!r}: {offered(unknown[0], OPERATIONS)}")
    return Grant(words[0], operations, tuple(words[2:]) or ("*",))


class Access:
    """The permissions of all tokens; without tokens everything is permitted, since the server is on loopback only."""

    def __init__(self, grants: Sequence[Grant] = ()) -> None:
        self.every = Tokens()
        """All tokens, for checks that do not depend on a permission."""
        self.replace(grants)

    def replace(self, grants: Sequence[Grant]) -> None:
        """Replace all permissions by those of ``grants``."""
        # A token may have several grants, each with its own channels, so they are searched one by one.
        # `Tokens` for its comparison in constant time, also where only one token is compared.
        self._grants = [(Tokens([grant.token]), grant) for grant in grants]
        self.every.replace(self.tokens)

    @property
    def closed(self) -> bool:
        """Whether requests need a token."""
        return bool(self._grants)

    @property
    def tokens(self) -> list[str]:
        """The texts of all tokens."""
        return [grant.token for _, grant in self._grants]

    @property
    def identities(self) -> frozenset[str]:
        """The identities of all tokens."""
        return frozenset(map(identity, self.tokens))

    def identity(self, token: str | None) -> str:
        """The identity of a request with this token; without tokens all requests have the same."""
        return identity(token) if self._grants and token is not None else OPEN

    def allows(self, token: str | None, operation: str, channel: str = "") -> bool:
        """Whether an operation is permitted; operations on facts have no channel."""
        if not self._grants:
            return True
        grants = [grant for tokens, grant in self._grants if tokens.admits(token)]
        if operation in _ON_FACTS:
            return any(operation in grant.operations for grant in grants)
        return any(grant.covers(operation, channel) for grant in grants)

    def require(self, token: str | None, operation: str, channel: str = "") -> None:
        """AccessError unless an operation is permitted."""
        if not self.allows(token, operation, channel):
            where = "" if operation in _ON_FACTS else f" on the channel {channel}"
            raise AccessError(f"this token is not for {operation}{where}: use one that is")
