"""Rows as tables: terms as native Python values, Arrow, pandas and Polars on request, HTML for notebooks."""

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from html import escape
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from streamgauge.model.controls import visible
from streamgauge.model.terms import XSD, Row, Term, datatype, is_iri, is_literal, lexical

if TYPE_CHECKING:
    import pyarrow


Native: TypeAlias = bool | int | float | Decimal | datetime | date | time | str
"""The Python value of a term."""

_INTEGERS: Final = frozenset(
    XSD + name
    for name in (
        *("integer", "long", "int", "short", "byte", "nonNegativeInteger", "positiveInteger", "nonPositiveInteger"),
        *("negativeInteger", "unsignedLong", "unsignedInt", "unsignedShort", "unsignedByte"),
    )
)
_REALS: Final = frozenset({XSD + "double", XSD + "float"})
_MOMENTS: Final = frozenset({XSD + "dateTime", XSD + "dateTimeStamp"})
_ZONE: Final = r"(?:Z|[+-][0-9]{2}:[0-9]{2})?"
_CLOCK: Final = r"[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,6}0*)?" + _ZONE
# Python reads more than XSD allows: `1_000`, `infinity`, other digits than ASCII's, `2026-W10-1`. Fractions of a second
# beyond its microseconds it would drop.
_FORMS: Final = {
    **dict.fromkeys(_INTEGERS, re.compile(r"[+-]?[0-9]+")),
    **dict.fromkeys(_REALS, re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|[+-]?INF|NaN")),
    XSD + "decimal": re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)"),
    XSD + "boolean": re.compile(r"true|false|1|0"),
    **dict.fromkeys(_MOMENTS, re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T" + _CLOCK)),
    XSD + "date": re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}"),
    XSD + "time": re.compile(_CLOCK),
}
"""The lexical forms of XSD 1.1 (part 2, 3.3) that have a value in Python."""
_FLOATS: Final = {"INF": math.inf, "+INF": math.inf, "-INF": -math.inf, "NaN": math.nan}


def native(term: Term | None) -> Native | None:
    """The value of a term: int, Decimal, float, bool, datetime, date, time or str; ``None`` for an unbound variable.

    IRIs are text without brackets, blank nodes unchanged. A literal of another datatype, an ill-formed one, or one with
    a value that Python lacks (the year 12000, nanoseconds) is its lexical form. Languages are dropped (``rows()`` has
    the terms).
    """
    if term is None or not is_literal(term):
        return term[1:-1] if term is not None and is_iri(term) else term
    text = lexical(term)
    kind = datatype(term) or ""
    form = _FORMS.get(kind)
    if form is None or not form.fullmatch(text):
        return text
    try:
        return _value(text, kind)
    except ValueError:  # no such day, the end of a day as 24:00:00, more digits than Python converts
        return text


def _value(text: str, kind: str) -> Native:
    if kind in _INTEGERS:
        return int(text)
    if kind in _REALS:
        return _FLOATS[text] if text in _FLOATS else float(text)
    if kind == XSD + "decimal":
        return Decimal(text)
    if kind == XSD + "boolean":
        return text in ("true", "1")
    if kind in _MOMENTS:
        return datetime.fromisoformat(text)
    return date.fromisoformat(text) if kind == XSD + "date" else time.fromisoformat(text)


SHOWN: Final = 20
"""Maximum number of rows in a notebook."""


class Tabular(ABC):
    """Mixin for rows with named columns; subclasses define ``columns`` and ``bag``."""

    __slots__ = ()

    @property
    @abstractmethod
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""

    @property
    @abstractmethod
    def bag(self) -> Sequence[Row]:
        """The rows, terms in N-Triples in the order of the columns."""

    def values(self) -> list[dict[str, Native | None]]:
        """The rows as dictionaries of native Python values, ``None`` for unbound variables."""
        names = self.columns
        return [dict(zip(names, map(native, row), strict=True)) for row in self.bag]

    def to_arrow(self) -> "pyarrow.Table":
        """The rows as an Arrow table.

        A column of one kind of values is int64, float64, decimal, bool, timestamp, date or string; one of several kinds
        is float64 if all are numbers, else string.
        """
        arrow = _library("pyarrow", "pyarrow")
        cells = list(zip(*(map(native, row) for row in self.bag), strict=True)) or [() for _ in self.columns]
        return arrow.table({name: _column(arrow, cell) for name, cell in zip(self.columns, cells, strict=True)})

    def to_pandas(self) -> Any:
        """The rows as a pandas DataFrame; ImportError names the command that installs pandas."""
        _library("pandas", "pandas")
        return self.to_arrow().to_pandas()

    def to_polars(self) -> Any:
        """The rows as a Polars DataFrame; ImportError names the command that installs Polars."""
        return _library("polars", "polars").from_arrow(self.to_arrow())

    def _repr_html_(self) -> str:
        """The first rows as a table, for notebooks."""
        rows = [[shown(term) for term in row] for row in self.bag[:SHOWN]]
        return html_table(self.columns, rows, more=len(self.bag) - len(rows))


def html_table(columns: Sequence[str], rows: Iterable[Sequence[str]], caption: str = "", more: int = 0) -> str:
    """An HTML table of texts; ``more`` are the rows that it leaves out."""
    head = "".join(f"<th>{escape(name)}</th>" for name in columns)
    body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
    title = f"<caption>{escape(caption)}</caption>" if caption else ""
    rest = f"<p>and {more:,} more rows</p>" if more > 0 else ""
    return visible(f"<table>{title}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{rest}")


def shown(term: Term | None) -> str:
    """A term for people: the plain text of its value."""
    value = native(term)
    return "" if value is None else str(value)


def _library(module: str, package: str) -> Any:
    try:
        return import_module(module)
    except ImportError:
        raise ImportError(f"{package} is not installed here: pip install {package}") from None


def _column(arrow: Any, cells: Sequence[Native | None]) -> Any:
    """An Arrow array of native values."""
    kinds = {type(cell) for cell in cells if cell is not None}
    try:
        # ``type`` and not ``isinstance``: a bool is an int, a datetime a date.
        if len(kinds) == 1 and kinds <= {bool, int, float, date}:
            return arrow.array(cells, _ARROW[kinds.pop()](arrow))
        if kinds == {datetime} and len({cell.tzinfo is None for cell in cells if isinstance(cell, datetime)}) == 1:
            # An Arrow timestamp has one zone for the whole column, or none.
            zoned = any(isinstance(cell, datetime) and cell.tzinfo for cell in cells)
            return arrow.array(cells, arrow.timestamp("us", "UTC" if zoned else None))
        if kinds == {Decimal}:
            return arrow.array(cells)
        if kinds and kinds <= {int, float, Decimal}:
            return arrow.array([None if cell is None else float(cell) for cell in cells], arrow.float64())  # type: ignore[arg-type]
    # Integers beyond 64 bits and decimals of more than 76 digits exist in RDF: then the column is text.
    except (OverflowError, arrow.ArrowException):
        pass
    return arrow.array([None if cell is None else str(cell) for cell in cells], arrow.string())


_ARROW: Final = {
    bool: lambda arrow: arrow.bool_(),
    int: lambda arrow: arrow.int64(),
    float: lambda arrow: arrow.float64(),
    date: lambda arrow: arrow.date32(),
}
