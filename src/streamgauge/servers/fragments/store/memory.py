"""A key-value store in memory that stores the text of a term once for its two records."""

from collections.abc import Iterator, Sequence
from typing import Final

from streamgauge.servers.fragments.store import NAMED, TEXT, DamagedStoreError, SortedRun, Writes
from streamgauge.servers.fragments.store.quad_keys import WIDTH


class MemoryKeyValues:
    """A key-value store in dictionaries; its content is lost when the process ends.

    The text of a term is the value of one record and part of the key of another. Texts that ``fill`` adds in the order
    of their numbers, from 0 on, are in a list indexed by number, and the same objects are the keys of the dictionary of
    numbers. A loaded term takes its text, its number, 8 bytes of the list and one dictionary entry.
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
        """Keys with a prefix, sorted, with the size of each value in bytes."""
        records = self._values.items() if prefix[:1] not in (TEXT, NAMED[:1]) else self._records()
        return iter(sorted((key, len(value)) for key, value in records if key.startswith(prefix)))

    def commit(self, writes: Writes) -> None:
        """Keep the writes aside until ``show``."""
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
            if keys[0].startswith(NAMED[:1]):
                self._fill_numbers(keys, values)
            elif self._follow(keys):
                self._texts += values
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
        place = self._place(key)
        if place is not None:
            self._texts[place] = value
        elif key.startswith(NAMED):
            self._put_number(key[len(NAMED) :], value)
        elif value is None:
            self._values.pop(key, None)
        else:
            self._values[key] = value

    def _put_number(self, text: bytes, number: bytes | None) -> None:
        """Set the number of a text, under the object that is stored as the number's text if they are equal."""
        if number is None:
            self._numbers.pop(text, None)
            return
        text_kept = self.get(TEXT + number)
        self._numbers[text_kept if text_kept == text else text] = number

    def _follow(self, keys: Sequence[bytes]) -> bool:
        """Whether sorted keys directly continue the list of texts."""
        if not keys[0].startswith(TEXT):
            return False
        first, last = (int.from_bytes(key[len(TEXT) :]) for key in (keys[0], keys[-1]))
        return first == len(self._texts) and last - first + 1 == len(keys)

    def _fill_numbers(self, keys: Sequence[bytes], numbers: Sequence[bytes]) -> None:
        """Set numbers of texts, using the objects of the list if all are in it; else one by one."""
        places = [*map(int.from_bytes, numbers)]
        if max(places) < len(self._texts):
            texts = [self._texts[place] or b"" for place in places]
            if [NAMED + text for text in texts] == keys:
                self._numbers.update(zip(texts, numbers, strict=True))
                return
        for key, number in zip(keys, numbers, strict=True):
            self._put(key, number)

    def _records(self) -> Iterator[tuple[bytes, bytes]]:
        """All records, in any order."""
        yield from self._values.items()
        yield from ((TEXT + place.to_bytes(WIDTH), text) for place, text in enumerate(self._texts) if text is not None)
        yield from ((NAMED + text, number) for text, number in self._numbers.items())
