"""Keys with values, changed as one: the contract of the bytes below a store; ``memory`` and ``disk`` implement it."""

from collections.abc import Iterator, Mapping
from typing import Final, Protocol, TypeAlias

from streamgauge.model.mistake import MistakeError

Writes: TypeAlias = Mapping[bytes, bytes | None]
"""New values by key; ``None`` drops the key."""

SIZED: Final = b"012345ABCDEFGHekl"
"""First bytes of the keys whose values' sizes are asked for: orders, runs, ends, the log."""


class FullError(MistakeError, RuntimeError):
    """There is no room for a change; nothing of it was made."""


class DamagedStoreError(MistakeError, RuntimeError):
    """What is kept is damaged; the sentence says where, and how what is sound is saved."""


class KeyValueStore(Protocol):
    """Keys with values, in order; what was committed is read only once it is shown."""

    def get(self, key: bytes) -> bytes | None:
        """The value shown. DamagedStoreError when it is not the one that was written."""
        ...

    def lost(self, key: bytes) -> DamagedStoreError:
        """The error for a record that must be there and is not."""
        ...

    def sizes(self, prefix: bytes) -> Iterator[tuple[bytes, int]]:
        """Keys that begin so (with one of ``SIZED``), in order, with the number of bytes of each value."""
        ...

    def commit(self, writes: Writes) -> None:
        """All or nothing; kept when it returns, not yet shown. FullError when there is no room."""
        ...

    def show(self) -> None:
        """From now on what was committed is read."""
        ...

    def close(self) -> None:
        """Nothing is read or written any more."""
        ...
