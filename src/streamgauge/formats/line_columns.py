"""JSON lines in columns: many are decoded together, and each distinct term is checked once.

Unusual lines are left to ``decode_input``, which reads them one by one and says what is wrong with them.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, zip_longest
from typing import Any, Final

import numpy as np

from streamgauge.formats.batches import FEW, TERMS, ElementBatch, NumberedTerms, Numbers, Taken
from streamgauge.formats.lines import Advance, Unsaid, are_canonical, decode_rows, only_advances, terms_of
from streamgauge.model.element import StreamElement
from streamgauge.model.terms import Term

_ENDED: Final = frozenset(("\n", ""))
_IRI, _LITERAL = b'<"'


class LineColumns:
    """Reads lines into batches, whose terms keep their numbers for about ``TERMS`` terms.

    ``check`` raises ValueError for a term that the stream may not have; it gets each distinct one once.
    """

    def __init__(self, check: Callable[[Iterable[Term]], None] = lambda _terms: None) -> None:
        self._check = check
        self._begin()

    def _begin(self) -> None:
        """Number terms from 0 on; ``_marks`` has the first byte of each, which tells IRIs, blank nodes and literals."""
        self._numbers, self._marks = NumberedTerms(), bytearray()

    def read(self, lines: bytes, unsaid: Unsaid | None = None) -> list[Taken] | None:
        """The elements of lines in columns, and the advances between them; ``None`` if a line is unusual.

        ``unsaid`` as for ``decode_input``; either all elements state a number or none does.
        """
        rows = decode_rows(lines, known=unsaid is not None)
        if not rows or any(row.remove or row.until is not None for row in rows):
            return None
        advances: list[Any] = [row.advance for row in rows]
        advanced = [at for at, time in enumerate(advances) if time is not None]
        if not all(only_advances(rows[at]) for at in advanced):
            return None
        elements = [row for row in rows if row.advance is None] if advanced else rows
        times: list[Any] = [row.t for row in elements]
        numbers: list[Any] = [row.n for row in elements]
        streams: list[Any] = [row.stream for row in elements]
        if unsaid is not None:
            streams, times = _filled(streams, unsaid.stream), _filled(times, unsaid.time)
            if unsaid.sequence is not None and numbers.count(None) == len(numbers):
                numbers = [*range(unsaid.sequence, unsaid.sequence + len(numbers))]
        batch = None if None in streams else self._batch(times, numbers, [row.add for row in elements])
        if batch is None:
            return None
        # Batches cut into a few elements each are slower than single elements.
        if len(set(streams)) != 1 or len(batch) < FEW * len(advanced):
            return list(_apart(advances, streams, batch))
        return _parted(replace(batch, stream=streams[0]), [(at, Advance(advances[at])) for at in advanced])

    def _batch(self, times: Sequence[Any], numbers: Sequence[Any], added: Sequence[str]) -> ElementBatch | None:
        """Elements in columns, their streams left out; ``None`` where a field is missing or unusual."""
        # The last line of an element's triples may lack its line end, which the count of triples below relies on.
        texts = [text if text[-1:] in _ENDED else f"{text}\n" for text in added]
        try:
            instants, sequences = np.array(times, np.int64), np.array(numbers, np.int64)
        except (TypeError, OverflowError):  # a field is missing, or has more than 64 bits
            return None
        ids = self._ids("".join(texts))
        if ids is None:
            return None
        borders = np.cumsum([0, *[text.count("\n") for text in texts]])
        return ElementBatch(self._numbers.terms, "", instants, sequences, borders, ids)

    def _ids(self, text: str) -> Numbers | None:
        """The numbers of the terms of triples, three for each; ``None`` for text in another layout."""
        terms = terms_of(text)
        if terms is None:
            return None
        if len(self._numbers) > TERMS:
            self._begin()
        ids = self._numbers.of(terms)
        # Numbered already, so that the whole numbering is given up: a refused term must not stay known.
        if not self._learn(self._numbers.terms[len(self._marks) :]):
            self._begin()
            return None
        # A subject is not a literal and a predicate is an IRI: the first byte of each term decides, for all triples at
        # once.
        marks = np.frombuffer(self._marks, np.uint8)[ids]
        return ids if (marks[0::3] != _LITERAL).all() and (marks[1::3] == _IRI).all() else None

    def _learn(self, terms: Sequence[Term]) -> bool:
        """Record the marks of new terms; false if one is not canonical, or the stream may not have it."""
        if not are_canonical(terms):
            return False
        try:
            self._check(terms)
        except ValueError:
            return False
        self._marks += "".join([term[0] for term in terms]).encode()
        return True


def _filled(column: list[Any], default: Any) -> list[Any]:
    """A column with a default for missing values."""
    return [default if value is None else value for value in column] if None in column else column


def _parted(batch: ElementBatch, advances: Sequence[tuple[int, Advance]]) -> list[Taken]:
    """A batch cut at the advances, each with the number of its line."""
    # Worked example: advances on the lines 3 and 7 follow 3 and 6 elements, as the line 3 itself is not an element.
    cuts = [at - before for before, (at, _) in enumerate(advances)]
    parts = [batch.part(*ends) for ends in zip([0, *cuts], [*cuts, len(batch)], strict=True)] if cuts else [batch]
    items = chain(*zip_longest(parts, [advance for _, advance in advances]))
    return [item for item in items if isinstance(item, Advance) or item]


def _apart(advances: Sequence[int | None], streams: Sequence[str], batch: ElementBatch) -> Iterator[Taken]:
    """Lines one by one, the elements of their own streams."""
    elements = zip(streams, batch.elements(), strict=True)
    for time in advances:
        if time is not None:
            yield Advance(time)
        else:
            stream, element = next(elements)
            yield StreamElement(stream, element.time, element.sequence, element.added)
