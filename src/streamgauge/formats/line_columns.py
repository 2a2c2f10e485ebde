"""JSON lines in columns: many are decoded together, and each distinct term is checked and becomes a string once.

The triples of all lines are one text of N-Triples, which is cut at its line ends and at the first two blanks of each
line; Arrow numbers the pieces. A worked example: ``<a> <p> "x y" .`` and ``<a> <p> "z" .``, each with its line end, are
six pieces: ``<a>_``, ``<p>_``, ``"x y" .|``, ``<a>_``, ``<p>_`` and ``"z" .|``, where ``_`` is the blank and ``|`` the
line end. Four of them are distinct, and become the terms 0, 1, 2 and 3; the triples are 0 1 2 and 0 1 3. Text in any
other layout is left to ``decode_input``, line by line.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, compress, zip_longest
from operator import attrgetter
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from streamgauge.formats.batches import FEW, TERMS, ElementBatch, NumberedTerms, Numbers, Taken
from streamgauge.formats.lines import CANONICAL_OBJECT, Advance, Unsaid, decode_rows
from streamgauge.model.element import StreamElement
from streamgauge.model.terms import Term

_FIELDS: Final = attrgetter("t", "n", "stream", "add", "remove", "until", "advance")
_TERMS: Final = re.compile(f"(?:(?:{CANONICAL_OBJECT})\n)*+")
_ENDED: Final = frozenset(("\n", ""))
_BLANK, _END, _DOT = b" \n."
_FIRST: Final = np.zeros((3, 256), np.bool_)
"""Whether a subject, predicate or object may begin with a byte."""
for _place, _bytes in enumerate((b"<_", b"<", b'<_"')):
    _FIRST[_place, list(_bytes)] = True


class LineColumns:
    """Reads lines into batches, whose terms keep their numbers for about ``TERMS`` terms.

    ``check`` raises ValueError for a term that the stream may not have; it gets each distinct one once.
    """

    def __init__(self, check: Callable[[Iterable[Term]], None] = lambda _terms: None) -> None:
        self._numbers, self._check = NumberedTerms(), check

    def read(self, lines: bytes, unsaid: Unsaid | None = None) -> list[Taken] | None:
        """The elements of lines in columns, and the advances between them; ``None`` if a line is unusual.

        ``unsaid`` as for ``decode_input``; either all elements state a number or none does.
        """
        rows = decode_rows(lines, known=unsaid is not None)
        if not rows:
            return None
        *columns, removed, ends, advances = zip(*map(_FIELDS, rows), strict=True)
        if any(removed) or ends.count(None) != len(rows):
            return None
        advanced = [at for at, time in enumerate(advances) if time is not None]
        if advanced:
            columns = [tuple(compress(column, [time is None for time in advances])) for column in columns]
        times, numbers, streams, texts = columns
        if unsaid is not None:
            streams, times = _filled(streams, unsaid.stream), _filled(times, unsaid.time)
            if unsaid.sequence is not None and numbers.count(None) == len(numbers):
                numbers = tuple(range(unsaid.sequence, unsaid.sequence + len(numbers)))
        batch = None if None in streams else self._batch(times, numbers, texts)
        if batch is None:
            return None
        if len(set(streams)) != 1 or len(batch) < FEW * len(advanced):
            return list(_apart(advances, streams, batch))
        return _parted(replace(batch, stream=streams[0]), [(at, Advance(advances[at])) for at in advanced])

    def _batch(self, times: Sequence[Any], numbers: Sequence[Any], added: Sequence[str]) -> ElementBatch | None:
        """Elements in columns, their streams left out; ``None`` where a field is missing or unusual."""
        texts = [text if text[-1:] in _ENDED else f"{text}\n" for text in added]
        try:
            instants, sequences = np.array(times, np.int64), np.array(numbers, np.int64)
            data = "".join(texts).encode()
        except (
            TypeError,
            OverflowError,
            UnicodeEncodeError,
        ):  # a field is missing, or half of a surrogate pair is there
            return None
        ids = self._ids(data)
        if ids is None:
            return None
        borders = np.cumsum([0, *[text.count("\n") for text in texts]])
        return ElementBatch(self._numbers.terms, "", instants, sequences, borders, ids)

    def _ids(self, text: bytes) -> Numbers | None:
        """The numbers of the terms of triples, three for each; ``None`` for text in another layout."""
        borders = _borders(text)
        if borders is None:
            return None
        pieces = pa.StringArray.from_buffers(len(borders) - 1, pa.py_buffer(borders), pa.py_buffer(text))
        encoded = pieces.dictionary_encode()
        distinct = [piece[:-3] if piece[-1] == "\n" else piece[:-1] for piece in encoded.dictionary.to_pylist()]
        if len(self._numbers) > TERMS:
            self._numbers = NumberedTerms()
        known = len(self._numbers)
        numbers = self._numbers.of(distinct)
        if not self._sound(self._numbers.terms[known:]):
            self._numbers = NumberedTerms()
            return None
        ids: Numbers = numbers[encoded.indices.to_numpy()]
        return ids

    def _sound(self, terms: Sequence[Term]) -> bool:
        """Whether terms are canonical and the stream may have them."""
        if not _TERMS.fullmatch("".join([f"{term}\n" for term in terms])):
            return False
        try:
            self._check(terms)
        except ValueError:
            return False
        return True


def _filled(column: tuple[Any, ...], default: Any) -> tuple[Any, ...]:
    """A column with a default value for what is missing."""
    return tuple([default if value is None else value for value in column]) if None in column else column


def _borders(data: bytes) -> npt.NDArray[np.int32] | None:
    """Where the three pieces of each line begin, and the end of the text.

    ``None`` where lines are not laid out so, or a term cannot be one of its place.
    """
    text = np.frombuffer(data, np.uint8)
    ends = np.flatnonzero(text == _END)
    blanks = np.flatnonzero(text == _BLANK)
    if len(text) != (ends[-1] + 1 if len(ends) else 0) or len(blanks) < 3 * len(ends):
        return None
    borders = np.empty(3 * len(ends) + 1, np.int32)
    borders[0], borders[3::3] = 0, ends + 1
    first = blanks.searchsorted(borders[:-1:3])
    # A line with too few blanks takes those of others, or the last ones twice: then pieces are empty or end early.
    borders[1::3] = blanks.take(first, mode="clip") + 1
    borders[2::3] = blanks.take(first + 1, mode="clip") + 1
    sizes = np.diff(borders).reshape(-1, 3)
    laid_out = (sizes > (1, 1, 3)).all() and (text[ends - 1] == _DOT).all() and (text[ends - 2] == _BLANK).all()
    placed = laid_out and all(_FIRST[place, text[borders[place:-1:3]]].all() for place in range(3))
    return borders if placed else None


def _parted(batch: ElementBatch, advances: Sequence[tuple[int, Advance]]) -> list[Taken]:
    """A batch cut at the advances, each with the number of its line."""
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
