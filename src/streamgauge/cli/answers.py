"""Answers as text: tables and live tables for people; JSON lines, N-Quads and CSV for programs."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from itertools import chain
from types import MappingProxyType, TracebackType
from typing import TYPE_CHECKING, Self, TypeAlias

from rich import box
from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from streamgauge.cli.streams import write
from streamgauge.cli.terminal import Terminal
from streamgauge.formats.lines import encode_answer
from streamgauge.formats.streams import stream_formats
from streamgauge.model.answer import Answer
from streamgauge.model.phrases import counted, date_text
from streamgauge.model.query import ContinuousQuery
from streamgauge.model.semantics import R2S, Semantics
from streamgauge.model.terms import XSD, Row, Term, by_parts, datatype, is_iri, is_literal, plain
from streamgauge.query import QueryError
from streamgauge.query.prologue import DEFAULT_BASE, read_prologue
from streamgauge.query.text import tokens
from streamgauge.query.traversal import answer_order
from streamgauge.report.fitting_table import FittingTable
from streamgauge.servers.queries.sessions import as_element, makes_triples
from streamgauge.watching import Watch, is_durable

if TYPE_CHECKING:
    from streamgauge.broker import Standing, Told
    from streamgauge.watching.durable import DurableWatch

Encoder: TypeAlias = Callable[[Answer], bytes]
"""Encodes an answer as complete lines."""

_NUMBERS = frozenset(XSD + name for name in ("integer", "decimal", "double", "float"))
_PLAIN = frozenset(XSD + name for name in ("integer", "decimal", "double", "float", "boolean", "string"))


def encoder(form: str, query: ContinuousQuery, dates: bool = False) -> Encoder:
    """The encoder of a format for a query, with ``dates`` in CSV; ValueError if they do not fit together."""
    if dates and form != "csv":
        raise ValueError(f"{form} has times in ms, as its readers expect: use --dates with csv or table")
    if form == "nquads" and not makes_triples(query):
        raise ValueError("nquads is for graphs, the answers of a CONSTRUCT query: use table, jsonl or csv")
    encoders: dict[str, Callable[[], Encoder]] = {
        "jsonl": lambda: encode_answer,
        "csv": lambda: _Csv(dates),
        "nquads": _Quads,
    }
    return encoders[form]()


KeyedEncoder: TypeAlias = Callable[[Answer], tuple[str | None, bytes]]
"""Encodes an answer as (key by which receivers recognise a duplicate, bytes)."""


def keyed(encode: Encoder, answers: Watch[Answer], *, lines: bool) -> KeyedEncoder:
    """The key of a durable answer is its number, which JSON ``lines`` contain too; otherwise its instant.

    Further answers of the same instant have a suffix: 5000, 5000.2.
    """
    if is_durable(answers):
        return partial(_numbered, encode, answers, lines)
    instants = _Instants()
    return lambda answer: (instants.key(answer), encode(answer))


def _numbered(encode: Encoder, answers: DurableWatch, lines: bool, answer: Answer) -> tuple[str | None, bytes]:
    # Numbers were given when the answer was made durable, in the same order in which answers come here.
    number, encoded = answers.numbers.popleft(), encode(answer)
    return str(number), answers.line(number, answer, encoded) if lines else encoded


class _Instants:
    """Keys of unnumbered answers: the instant, with a suffix from the second answer of an instant on."""

    def __init__(self) -> None:
        self._last: int | None = None
        self._count = 0

    def key(self, answer: Answer) -> str | None:
        """The key of the next answer."""
        self._count = self._count + 1 if answer.instant == self._last else 1
        self._last = answer.instant
        if answer.instant is None:
            return None
        return str(answer.instant) if self._count == 1 else f"{answer.instant}.{self._count}"


class _Quads:
    """A named graph per report, and its instant: the format ``nquads`` of streams."""

    def __init__(self) -> None:
        self._count = 0

    def __call__(self, answer: Answer) -> bytes:
        element = as_element(answer, "", self._count)
        self._count += 1
        encode = stream_formats()["nquads"].encode
        assert encode is not None
        return encode(element) if element.added else b""


class _Csv:
    """A line per row: instant and scope, in ms or as dates, ``+`` or ``-``, plain values (SPARQL results in CSV)."""

    def __init__(self, dates: bool) -> None:
        self._headed, self._dates = False, dates

    def __call__(self, answer: Answer) -> bytes:
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\r\n")
        if not self._headed:
            writer.writerow(["instant", "start", "end", "change", *answer.columns])
            self._headed = True
        times = (answer.instant, *(answer.scope or (None, None)))
        head = [_iso(time) if self._dates and time is not None else time for time in times]
        for sign, row in _changes(answer):
            writer.writerow([*head, sign, *map(_plain, row)])
        return text.getvalue().encode()


def _iso(ms: int) -> str:
    """A time as xsd:dateTime, or in ms beyond the year 9999."""
    return (date_text(ms, always=True) or str(ms)).replace(" ", "T")


def _changes(answer: Answer) -> Iterator[tuple[str, Row]]:
    return chain((("+", row) for row in answer.added), (("-", row) for row in answer.removed))


def _plain(term: Term | None) -> str:
    """A term without brackets, quotes, language, direction and datatype; a triple term as in N-Triples."""
    return "" if term is None else plain(term)


class Shown:
    """Prints answers as tables: a line for the report, then its rows; IRIs are shortened by ``prefixes``.

    Rows of a query without ORDER BY are sorted by value, so that two reports can be compared by eye.
    """

    def __init__(
        self,
        console: Console,
        query: ContinuousQuery,
        semantics: Semantics,
        prefixes: Mapping[str, str],
        dates: bool = False,
    ) -> None:
        self._console, self._dates = console, dates
        self._short = partial(shortened, prefixes=longest_first(prefixes))
        self._ordered = answer_order(query.form) is not None
        r2s = query.r2s or semantics.r2s
        # RSTREAM repeats every row in each report, so a plus before each would say nothing; DSTREAM has removed rows
        # only.
        signs = {R2S.RSTREAM: {"+": "", "-": "-"}, R2S.DSTREAM: {"+": "-"}}
        self._signs = signs.get(r2s, {"+": "+", "-": "-"})

    def __call__(self, answer: Answer) -> None:
        """Print a report under its headline; removed rows have a sign."""
        self._console.print(Text(_headline(answer, self._dates), style="bold"))
        rows = list(_changes(answer))
        # A bag has no order; sorted rows make two outputs comparable.
        if not self._ordered:
            rows.sort(key=lambda change: (change[0] != "+", row_key(change[1])))
        if answer.kind == "boolean":
            self._console.print(f"  {_plain(answer.added[0][0])}" if answer.added else "  no answer")
        elif rows:
            self._console.print(self._table(answer.columns, rows))

    def _table(self, columns: Sequence[str], rows: Sequence[tuple[str, Row]]) -> FittingTable:
        table = FittingTable(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
        signs = [self._signs.get(sign, sign) for sign, _ in rows]
        if any(signs):
            table.add_column("")
        for column in columns:
            table.add_column(column)
        for sign, (_, row) in zip(signs, rows, strict=True):
            cells = [Text(self._short(term)) for term in row]
            table.add_row(*([Text(sign)] if any(signs) else []), *cells)
        return table


def prefixes(query_text: str) -> Mapping[str, str]:
    """The prefixes that a query declares; none if it cannot be parsed."""
    try:
        return read_prologue(query_text, tokens(query_text), default=DEFAULT_BASE).prefixes
    except QueryError:
        return {}


def longest_first(prefixes: Mapping[str, str]) -> list[tuple[str, str]]:
    """Prefixes and their IRIs in the order of matching."""
    # The longest IRI first: with ``ex: <http://e/>`` and ``room: <http://e/room/>``, <http://e/room/1> is room:1, not
    # ex:room/1.
    return sorted(prefixes.items(), key=lambda pair: -len(pair[1]))


def shortened(term: Term | None, prefixes: Sequence[tuple[str, str]]) -> str:
    """A term for people: plain values, IRIs with the first prefix that matches."""
    return "" if term is None else by_parts(term, partial(_short, prefixes=prefixes))


def _short(term: Term, prefixes: Sequence[tuple[str, str]]) -> str:
    if not is_literal(term):
        return _name(term, prefixes) if is_iri(term) else term
    kind = datatype(term)
    if kind in _PLAIN:
        return _plain(term)
    written = f"^^<{kind}>"
    # A literal without a written datatype, such as one with a language tag, stays as it is.
    return f"{term.removesuffix(written)}^^{_name(f'<{kind}>', prefixes)}" if term.endswith(written) else term


def _name(iri: Term, prefixes: Sequence[tuple[str, str]]) -> str:
    for prefix, start in (*prefixes, ("xsd", XSD)):
        if iri.startswith(start, 1):
            return f"{prefix}:{iri[1 + len(start) : -1]}"
    return iri


def row_key(row: Row) -> tuple[tuple[int, float, str], ...]:
    """The sort key of rows: unbound, then numbers by value, then other terms as text."""
    return tuple(map(_term_key, row))


def _term_key(term: Term | None) -> tuple[int, float, str]:
    if term is None:
        return (0, 0.0, "")
    if is_literal(term) and datatype(term) in _NUMBERS:
        try:
            number = float(_plain(term))
        except ValueError:
            number = math.nan
        # NaN compares as neither less nor greater, which leaves a sorted list in any order.
        if not math.isnan(number):
            return (1, number, term)
    return (2, 0.0, term)


def _headline(answer: Answer, dates: bool) -> str:
    scope = f"[{' .. '.join(timed(time, dates=dates) for time in answer.scope)}]" if answer.scope else ""
    instant = timed(answer.instant, dates=dates) if answer.instant is not None else ""
    count = len(answer.added) + len(answer.removed)
    what = "" if answer.kind == "boolean" else f"{count} row{'' if count == 1 else 's'}"
    return "  ".join(filter(None, [instant, scope, what])) or "report"


def timed(ms: int, *, dates: bool = False) -> str:
    """Seconds, or date and time where the number counts ms since 1970, or with ``dates``."""
    return date_text(ms, always=dates) or f"{ms / 1000:g} s"


class LiveTable:
    """Rows on a terminal that change in place, new ones marked by ``+``; IRIs shortened by ``prefixes``."""

    def __init__(
        self,
        columns: Sequence[str],
        prefixes: Mapping[str, str],
        caption: str,
        console: Console | None = None,
        rows: Sequence[Row] = (),
    ) -> None:
        self._columns, self._prefixes, self._rows = columns, longest_first(prefixes), rows
        self._new: Collection[Row] = ()
        self._caption = Text(caption, style="dim")
        self._live = Live(self._table(), console=console or Terminal(highlight=False), auto_refresh=False)

    def __enter__(self) -> Self:
        self._live.start(refresh=True)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._live.stop()

    def show_rows(self, rows: Sequence[Row], new: Collection[Row], caption: str | None = None) -> None:
        """Replace the rows, of which some are ``new``, and the caption unless it is ``None``."""
        self._rows, self._new = rows, new
        self._caption = self._caption if caption is None else Text(caption, style="dim")
        self._live.update(self._table(), refresh=True)

    def say(self, caption: str, style: str = "dim") -> None:
        """Replace the caption below the table and redraw it."""
        self._caption = Text(caption, style=style)
        self._live.update(self._table(), refresh=True)

    def _table(self) -> Group:
        table = FittingTable(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
        for column in ("", *self._columns):
            table.add_column(column)
        for row in self._rows:
            sign, style = ("+", "bold") if row in self._new else ("", "")
            table.add_row(sign, *[Text(shortened(term, self._prefixes)) for term in row], style=style)
        return Group(table, self._caption)


MAX_ROWS_SHOWN = 200
"""Maximum number of rows in a channel's live table: the latest ones."""


class NotificationLines:
    """A channel's notifications as JSON lines on standard output; rows are objects of N-Triples terms by variable."""

    def show(self, notification: Told) -> None:
        """Print a notification as a JSON object: channel, number, added and removed rows."""
        line = {
            "channel": notification.channel,
            "number": notification.number,
            "key": notification.key,
            "at": notification.at,
            "publications": notification.publications,
            "added": [_named(notification.columns, row) for row in notification.added],
            "removed": [_named(notification.columns, row) for row in notification.removed],
        }
        if notification.boolean is not None:
            line["boolean"] = notification.boolean
        write((json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n").encode())


def _named(columns: tuple[str, ...], row: Row) -> dict[str, str]:
    return {name: term for name, term in zip(columns, row, strict=True) if term is not None}


class LiveChannel(LiveTable):
    """A channel's current answer on a terminal, starting with the answer at subscription."""

    def __init__(
        self, begun: Standing, console: Console | None = None, prefixes: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        # A dict and not a set, for its order: the newest rows are the last ones, and only these fit on the screen.
        self._answer = dict.fromkeys(begun.rows)
        super().__init__(begun.columns, prefixes, "waiting for changes, Ctrl-C to end", console, self._latest())

    def _latest(self) -> list[Row]:
        return list(self._answer)[-MAX_ROWS_SHOWN:]

    def show(self, notification: Told) -> None:
        """Update the table by a notification."""
        for row in notification.removed:
            self._answer.pop(row, None)
        self._answer |= dict.fromkeys(notification.added)
        when = datetime.fromtimestamp(notification.at / 1000, UTC).strftime("%H:%M:%S.%f")[:-3]
        rows = counted(len(self._answer), "row")
        moves = f"{len(notification.added)} added, {len(notification.removed)} removed"
        caption = f"{notification.number}: {moves} at {when}Z; {rows}"
        self.show_rows(self._latest(), frozenset(notification.added), caption)
