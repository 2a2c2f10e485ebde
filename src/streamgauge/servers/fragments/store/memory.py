"""A store in memory, for data sets that are made again when the process is."""

from collections.abc import Iterator

from streamgauge.servers.fragments.store import Keep
from streamgauge.servers.fragments.store.indexed import IndexedStore
from streamgauge.servers.fragments.store.key_value import DamagedStoreError, Writes


class MemoryKeyValues:
    """A dictionary; nothing is kept when the process ends."""

    def __init__(self) -> None:
        self._values: dict[bytes, bytes] = {}
        self._written: list[Writes] = []

    def get(self, key: bytes) -> bytes | None:
        """The value shown."""
        return self._values.get(key)

    def lost(self, key: bytes) -> DamagedStoreError:
        """The error for a record that must be there and is not."""
        return DamagedStoreError(f"the record {key.hex()} is missing from memory")

    def sizes(self, prefix: bytes) -> Iterator[tuple[bytes, int]]:
        """Keys that begin so, in order, with the number of bytes of each value."""
        keys = sorted(key for key in self._values if key.startswith(prefix))
        return ((key, len(self._values[key])) for key in keys)

    def commit(self, writes: Writes) -> None:
        """Held until it is shown."""
        self._written.append(writes)

    def show(self) -> None:
        """From now on what was committed is read."""
        for writes in self._written:
            for key, value in writes.items():
                if value is None:
                    self._values.pop(key, None)
                else:
                    self._values[key] = value
        self._written.clear()

    def close(self) -> None:
        """Forget everything."""
        self._values.clear()


class MemoryStore(IndexedStore):
    """Quads in memory; with ``keep`` those that left too."""

    def __init__(self, keep: Keep | None = None) -> None:
        super().__init__(MemoryKeyValues(), keep)
