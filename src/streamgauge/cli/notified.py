"""A channel's notifications as they come: a live table of its answer, or JSON lines."""

import json
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from types import MappingProxyType, TracebackType

from rich import box
from rich import live as rich_live
from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from streamgauge.broker import Standing, Told
from streamgauge.cli.answers import longest_first, shortened
from streamgauge.model.phrases import counted
from streamgauge.model.terms import Row

MOST = 200
"""Rows of a live table, those that came last."""


class Lines:
    """Notifications as JSON lines on standard output; rows are objects of N-Triples terms by variable."""

    def show(self, told: Told) -> None:
        """One line."""
        line = {
            "channel": told.channel,
            "number": told.number,
            "key": told.key,
            "at": told.at,
            "publications": told.publications,
            "added": [_named(told.columns, row) for row in told.added],
            "removed": [_named(told.columns, row) for row in told.removed],
        }
        if told.boolean is not None:
            line["boolean"] = told.boolean
        sys.stdout.write(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n")
        sys.stdout.flush()


def _named(columns: tuple[str, ...], row: Row) -> dict[str, str]:
    return {name: term for name, term in zip(columns, row, strict=True) if term is not None}


class Live:
    """The answer as it is now, on a terminal; rows that just came are marked, IRIs shortened by ``prefixes``."""

    def __init__(
        self, begun: Standing, console: Console | None = None, prefixes: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        self._prefixes = longest_first(prefixes)
        self._columns = begun.columns
        self._rows = dict.fromkeys(begun.rows)
        self._new: frozenset[Row] = frozenset()
        self._said = Text("waiting for changes, Ctrl-C to end", style="dim")
        self._live = rich_live.Live(self._table(), console=console or Console(highlight=False), auto_refresh=False)

    def __enter__(self) -> "Live":
        self._live.start(refresh=True)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._live.stop()

    def show(self, told: Told) -> None:
        """The answer after a notification."""
        for row in told.removed:
            self._rows.pop(row, None)
        self._rows |= dict.fromkeys(told.added)
        self._new = frozenset(told.added)
        when = datetime.fromtimestamp(told.at / 1000, UTC).strftime("%H:%M:%S.%f")[:-3]
        rows = counted(len(self._rows), "row")
        text = f"{told.number}: {len(told.added)} came, {len(told.removed)} left at {when}Z; {rows}"
        self._said = Text(text, style="dim")
        self._live.update(self._table(), refresh=True)

    def _table(self) -> Group:
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
        for column in ("", *self._columns):
            table.add_column(column, overflow="fold")
        for row in list(self._rows)[-MOST:]:
            new = row in self._new
            table.add_row(
                "+" if new else "",
                *[Text(shortened(term, self._prefixes)) for term in row],
                style="bold" if new else "",
            )
        return Group(table, self._said)
