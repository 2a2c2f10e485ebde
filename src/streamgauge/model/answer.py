"""Answers: the reports of an engine."""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from itertools import repeat
from typing import Final, Literal, TypeAlias

from streamgauge.model.tabular import SHOWN, Tabular, html_table, shown
from streamgauge.model.terms import XSD, Row, Term

AnswerKind: TypeAlias = Literal["solutions", "triples", "boolean"]


@dataclass(frozen=True, slots=True)
class Answer(Tabular):
    """One report of an engine.

    ``received`` is the harness's monotonic clock in ns (0 until it is stamped). ``instant`` (ms) and ``scope`` (start,
    end in ms) are the report that the engine claims to answer, ``None`` without a claim. ``added`` is the bag that is
    streamed; ``removed`` is empty unless the engine sends deltas.
    ``made`` (monotonic ns) is when the engine claims to have computed the answer, ``None`` without a claim.
    ``rows()`` and ``values()`` are the rows of ``added`` as terms and as native Python values; ``to_arrow()``,
    ``to_pandas()`` and ``to_polars()`` convert them to tables.
    A boolean answer is one row with ``"true"^^xsd:boolean`` or ``"false"^^xsd:boolean``.
    """

    variables: tuple[str, ...]
    added: tuple[Row, ...]
    removed: tuple[Row, ...] = ()
    kind: AnswerKind = "solutions"
    instant: int | None = None
    scope: tuple[int, int] | None = None
    received: int = 0
    made: int | None = None

    def rows(self) -> list[dict[str, Term]]:
        """The rows of ``added`` by column, terms in N-Triples, unbound variables left out.

        The columns of triples are ``subject``, ``predicate`` and ``object``, that of a boolean is ``answer``.
        """
        names = self.columns
        return [{name: term for name, term in zip(names, row, strict=True) if term is not None} for row in self.added]

    def row_by_row(self) -> "list[Answer]":
        """Split the answer into one for each row: first the added rows, then the removed ones."""
        # The answer already is what would be made of it.
        if len(self.added) + len(self.removed) == 1:
            return [self]
        came = [((row,), ()) for row in self.added]
        went = [((), (row,)) for row in self.removed]
        return _alike(self, [*came, *went])

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns, by the kind of the answer."""
        if self.kind == "solutions":
            return self.variables
        return ("subject", "predicate", "object") if self.kind == "triples" else ("answer",)

    @property
    def bag(self) -> tuple[Row, ...]:
        """The rows of ``added``."""
        return self.added

    def _repr_html_(self) -> str:
        """The report with its first rows, for notebooks; Istream and Dstream mark rows by + and -."""
        signed = [("+", row) for row in self.added] + [("\N{MINUS SIGN}", row) for row in self.removed]
        marks = bool(self.removed)
        rows = [[*([sign] if marks else []), *map(shown, row)] for sign, row in signed[:SHOWN]]
        scope = f" of [{self.scope[0]:,}, {self.scope[1]:,}]" if self.scope else ""
        caption = (
            f"report at {self.instant:,} ms{scope}: {len(signed):,} rows" if self.instant is not None else "report"
        )
        return html_table([*([""] if marks else []), *self.columns], rows, caption, len(signed) - len(rows))


_FIELDS: Final = tuple((field.name, getattr(Answer, field.name).__set__) for field in fields(Answer))
"""For each field the slot's setter, which works although the class is frozen."""


FEW: Final = 8
"""Answers up to which calling the constructor is as fast as setting them field by field."""


def _alike(answer: Answer, rows: Sequence[tuple[tuple[Row, ...], tuple[Row, ...]]]) -> list[Answer]:
    """Copies of an answer with other rows; many are set field by field, in half of the constructor's time."""
    if len(rows) <= FEW:
        rest = (answer.kind, answer.instant, answer.scope, answer.received, answer.made)
        return [Answer(answer.variables, came, went, *rest) for came, went in rows]
    answers = list(map(object.__new__, repeat(Answer, len(rows))))
    own = {"added": [came for came, _ in rows], "removed": [went for _, went in rows]}
    for name, put in _FIELDS:
        # A deque of length 0 consumes the iterator in C, without a Python loop.
        deque(map(put, answers, own.get(name, repeat(getattr(answer, name)))), maxlen=0)
    return answers


class AnswerTable(Tabular):
    """The rows of several answers as one table: ``instant``, ``start``, ``end`` of the report (ms), ``change``, theirs.

    ``change`` is + for a row that is streamed and - for one that is taken back. Answers must have the same columns.
    """

    def __init__(self, answers: Iterable[Answer]) -> None:
        self._answers = tuple(answers)
        first = self._answers[0].columns if self._answers else ()
        if any(answer.columns != first for answer in self._answers):
            raise ValueError("these answers have different columns: make a table from those of one query")
        self._columns = ("instant", "start", "end", "change", *first)
        self._rows = tuple(_table_rows(self._answers))

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return self._columns

    @property
    def bag(self) -> tuple[Row, ...]:
        """The rows, terms in N-Triples."""
        return self._rows

    def __len__(self) -> int:
        return len(self._rows)


def _table_rows(answers: Iterable[Answer]) -> Iterator[Row]:
    for answer in answers:
        start, end = answer.scope or (None, None)
        head = tuple(None if ms is None else f'"{ms}"^^<{XSD}integer>' for ms in (answer.instant, start, end))
        for sign, rows in (("+", answer.added), ("-", answer.removed)):
            for row in rows:
                yield (*head, f'"{sign}"', *row)
