"""Answers as rows of cells: terms in short, the changes that they make, the columns that are numbers."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import Final

import msgspec

from streamgauge.model.tabular import native
from streamgauge.model.terms import Term
from streamgauge.report.exports import table
from streamgauge.servers.http.events import Numbered
from streamgauge.workbench.terms import ShownCell, plain_term, shown_cell, shown_time

LARGEST: Final = 10**100

ROWS: Final = 200
"""The most rows of one answer, and of a table, that are shown."""


class AnswerLine(msgspec.Struct, frozen=True):
    """A line of an engine as the core keeps it: rows that come, rows that go, terms in N-Triples."""

    vars: tuple[str, ...] = ()
    add: list[list[str | None]] = []
    remove: list[list[str | None]] | None = None
    kind: str = "solutions"
    instant: int | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of its columns."""
        if self.kind == "triples":
            return ("subject", "predicate", "object")
        return ("answer",) if self.kind == "boolean" else self.vars


@dataclass(frozen=True, slots=True)
class NumberedAnswer:
    """An answer with its number."""

    number: int
    line: AnswerLine


@dataclass(frozen=True, slots=True)
class ShownRow:
    """A row of the table: number of its answer, its instant as text, the sign of its change, its cells."""

    number: int
    instant: str
    sign: str
    cells: tuple[ShownCell, ...]


_decode = msgspec.json.Decoder(AnswerLine).decode


def read_answers(kept: Iterable[Numbered[bytes]]) -> list[NumberedAnswer]:
    """The answers of lines."""
    return [NumberedAnswer(entry.number, _decode(entry.line)) for entry in kept]


def columns(answers: Sequence[NumberedAnswer]) -> tuple[str, ...]:
    """The columns of answers to one query: those of the newest that has any."""
    return next((answer.line.columns for answer in reversed(answers) if answer.line.columns), ())


def shown_rows(answer: NumberedAnswer, prefixes: Mapping[str, str]) -> list[ShownRow]:
    """The rows of an answer, at most ``ROWS``; one without cells where it has none."""
    line, instant = answer.line, shown_time(answer.line.instant)
    signed = [("+", row) for row in line.add] + [("\N{MINUS SIGN}", row) for row in line.remove or ()]
    if not signed:
        return [ShownRow(answer.number, instant, "", ())]
    named = tuple(prefixes.items())
    return [
        ShownRow(answer.number, instant, sign, tuple(shown_cell(term, named) for term in row))
        for sign, row in signed[:ROWS]
    ]


def newest_rows(answers: Sequence[NumberedAnswer], prefixes: Mapping[str, str]) -> list[ShownRow]:
    """The rows of the newest answers, newest first, at most ``ROWS``."""
    rows: list[ShownRow] = []
    for answer in reversed(answers):
        rows += shown_rows(answer, prefixes)
        if len(rows) >= ROWS:
            break
    return rows[:ROWS]


def as_lines(kept: Sequence[Numbered[bytes]]) -> bytes:
    """Answers as lines of JSON."""
    return b"".join(answer.line + b"\n" for answer in kept)


def as_csv(kept: Sequence[Numbered[bytes]]) -> bytes:
    """Answers as CSV, a line for each row: the answer's number, its instant (ms), + or -, the terms.

    Terms are as in the CSV results of SPARQL 1.1: IRIs and the texts of literals.
    """
    answers = read_answers(kept)
    names = columns(answers)
    lines: list[Sequence[object]] = [("answer", "instant, ms", "change", *names)]
    for answer in answers:
        signed = [("+", row) for row in answer.line.add] + [("-", row) for row in answer.line.remove or ()]
        lines += [(answer.number, answer.line.instant, sign, *map(plain_term, row)) for sign, row in signed]
    return table(lines).encode(errors="backslashreplace")


DOWNLOADS: Final[Mapping[str, tuple[Callable[[Sequence[Numbered[bytes]]], bytes], str]]] = {
    "csv": (as_csv, "text/csv; charset=utf-8"),
    "jsonl": (as_lines, "application/x-ndjson"),
}
"""Files of answers by their endings: the writer, and the media type."""


@lru_cache(maxsize=20_000)
def number(term: Term | None) -> float | None:
    """The number that a term is, less than 1e100 from 0, as a chart can show it; ``None`` for any other."""
    value = native(term)
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        return None
    # ``float`` of a large integer raises OverflowError.
    number = float(value) if -LARGEST < value < LARGEST else math.inf
    return number if math.isfinite(number) else None
