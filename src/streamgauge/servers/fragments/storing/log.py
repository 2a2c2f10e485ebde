"""What the last changes were: quads taken out and put in, by version, as many as are remembered."""

from collections import Counter, deque
from collections.abc import Iterator
from itertools import chain
from typing import Final, TypeAlias

from streamgauge.servers.fragments.storing.shelf import Shelf, Writes
from streamgauge.servers.fragments.storing.turns import rows

VERSIONS: Final = 1_000
QUADS: Final = 100_000
"""Remembered are at most so many versions, and versions of at most so many quads in all (but always the last)."""

_LOG = b"l"
Change: TypeAlias = tuple[bytes, bytes]
"""Keys of quads removed, one after the other; and added."""


class Log:
    """The log on a shelf; ``width`` is that of a quad's key."""

    def __init__(self, width: int, shelf: Shelf) -> None:
        self._width, self._shelf = width, shelf
        self._kept = deque((int.from_bytes(key[1:]), size // width) for key, size in shelf.sizes(_LOG))
        self._quads = sum(quads for _, quads in self._kept)
        self._mentioned: Counter[bytes] = Counter()
        for version, _ in self._kept:
            self._mentioned.update(_numbers(self._change(version)[0]))

    def since(self, version: int, now: int) -> Iterator[Change] | None:
        """The changes after a version up to ``now``, oldest first; ``None`` when they are not all remembered."""
        if version > now or (version < now and (not self._kept or self._kept[0][0] > version + 1)):
            return None
        return (self._change(each) for each, _ in self._kept if each > version)

    def writes(self, version: int, change: Change) -> Writes:
        """What is to be written for a new version: itself, and those forgotten for it."""
        removed, added = change
        value = len(removed).to_bytes(8) + removed + added
        gone = {self._key(each): None for each in self._forgotten((len(removed) + len(added)) // self._width)}
        return {**gone, self._key(version): value}

    def forgets(self, change: Change) -> bytes:
        """The keys of quads removed in the versions that are forgotten for a new one."""
        removed, added = change
        versions = self._forgotten((len(removed) + len(added)) // self._width)
        return b"".join(self._change(version)[0] for version in versions)

    def mentions(self, number: bytes) -> bool:
        """Whether a term of that number is in a quad that was removed in a version that is remembered."""
        return number in self._mentioned

    def apply(self, version: int, change: Change, forgotten: bytes) -> None:
        """Hold a new version, and not the keys it ``forgets``, once its writes are shown."""
        quads = sum(map(len, change)) // self._width
        for _ in self._forgotten(quads):
            self._quads -= self._kept.popleft()[1]
        for number in _numbers(forgotten):
            self._mentioned[number] -= 1
            if not self._mentioned[number]:
                del self._mentioned[number]
        self._mentioned.update(_numbers(change[0]))
        self._kept.append((version, quads))
        self._quads += quads

    def _forgotten(self, quads: int) -> list[int]:
        """The versions that go when one of so many quads comes."""
        gone: list[int] = []
        left, versions = self._quads + quads, len(self._kept) + 1
        for version, size in self._kept:
            if left <= QUADS and versions <= VERSIONS:
                break
            gone.append(version)
            left, versions = left - size, versions - 1
        return gone

    def _change(self, version: int) -> Change:
        value = self._shelf.get(self._key(version))
        if value is None:
            raise self._shelf.lost(self._key(version))
        middle = 8 + int.from_bytes(value[:8])
        return value[8:middle], value[middle:]

    @staticmethod
    def _key(version: int) -> bytes:
        return _LOG + version.to_bytes(8)


def _numbers(keys: bytes) -> Iterator[bytes]:
    return chain.from_iterable(rows(keys))
