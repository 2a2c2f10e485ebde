"""A key-value store in memory that stores the text of a term once for its two records."""

from collections.abc import Iterator
from typing import Final

from streamgauge.servers.fragments.store import NAMED, TEXT, DamagedStoreError, SortedRun, Writes


class MemoryKeyValues:
    """A key-value store in dictionaries; its content is lost when the process ends.

    The text of a term is the value of one record and part of the key of another. Terms of a load are numbered from 0 on
    without gaps, so their texts are in a list indexed by number, and the same objects are the keys of the dictionary of
    numbers: a term takes its text, its number, 8 bytes of the list and one dictionary entry. Later terms come and go,
    and their numbers are never used again: a list would grow forever, so they are in a dictionary. Records of texts
    have to precede those of their numbers.
    """

    remembered: Final = 1_000
    """Terms cached by a ``TermDictionary``."""

    def __init__(self) -> None:
        self._values: dict[bytes, bytes] = {}
        self._texts: list[bytes | None] = []
        self._numbers: dict[bytes, bytes] = {}
        self._written: list[Writes] = []

    def get(self, key: bytes) -> bytes | None:
        """The readable value of a key."""
        value = self._values.get(key)
        if value is not None:
            return value
        if key.startswith(NAMED):
            return self._numbers.get(key[len(NAMED) :])
        return None if (place := self._place(key)) is None else self._texts[place]

    def trouble(self) -> str:
        """Never refuses a change."""
        return ""

    def lost(self, key: bytes) -> DamagedStoreError:
        """The error for a required record that is missing."""
        return DamagedStoreError(f"the record {key.hex()} is missing from memory")

    def sizes(self, prefix: bytes) -> Iterator[tuple[bytes, int]]:
        """Keys with a prefix (its first byte in ``SIZED``), sorted, with the size of each value in bytes."""
        return iter(sorted((key, len(value)) for key, value in self._values.items() if key.startswith(prefix)))

    def commit(self, writes: Writes) -> None:
        """Keep the writes aside until ``show``."""
        # As a store on disk: what is committed becomes readable at one point, so that a failure in between shows
        # nothing.
        self._written.append(writes)

    def show(self) -> None:
        """Make committed writes readable."""
        for writes in self._written:
            for key, value in writes.items():
                self._put(key, value)
        self._written.clear()

    def fill(self, *runs: SortedRun) -> None:
        """Add and show records of new keys."""
        for keys, values in sorted(runs, key=lambda run: run[0][0], reverse=True):  # texts before their numbers
            if keys[0].startswith(TEXT) and int.from_bytes(keys[0][len(TEXT) :]) == len(self._texts):
                self._texts += values
            elif keys[0].startswith(NAMED) and int.from_bytes(max(values)) < len(self._texts):
                texts = [self._texts[place] or b"" for place in map(int.from_bytes, values)]
                # The objects of the list and not those of the run, which are equal copies.
                self._numbers.update(zip(texts, values, strict=True))
            elif keys[0].startswith(NAMED[:1]):
                for key, value in zip(keys, values, strict=True):
                    self._put(key, value)
            else:
                self._values.update(zip(keys, values, strict=True))

    def close(self) -> None:
        """Release the memory of all records."""
        self._values.clear()
        self._texts.clear()
        self._numbers.clear()

    def _place(self, key: bytes) -> int | None:
        """The index in the list of texts of a key ``TEXT`` + number; ``None`` for other keys."""
        if not key.startswith(TEXT):
            return None
        place = int.from_bytes(key[len(TEXT) :])
        return place if place < len(self._texts) else None

    def _put(self, key: bytes, value: bytes | None) -> None:
        if (place := self._place(key)) is not None:
            self._texts[place] = value
        elif key.startswith(NAMED) and value is not None:
            # Under the object that is the number's text, which is equal to that of the key.
            self._numbers[self.get(TEXT + value) or key[len(NAMED) :]] = value
        elif key.startswith(NAMED):
            self._numbers.pop(key[len(NAMED) :], None)
        elif value is None:
            self._values.pop(key, None)
        else:
            self._values[key] = value
