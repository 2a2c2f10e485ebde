"""Tables for terminals of any width: if the columns do not fit side by side, each row is printed as a record."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from rich.console import Console, ConsoleOptions, RenderResult
from rich.measure import Measurement
from rich.table import Column, Table
from rich.text import Text

LEGIBLE: Final = 16
"""Minimum width of a column for long words, in characters; narrower ones are not legible."""

UNBOUNDED: Final = 1_000_000
"""A width at which nothing is wrapped, in characters."""


class FittingTable(Table):
    """A table that loses no text on a narrow terminal.

    Words of up to ``LEGIBLE`` characters stay whole, longer ones are wrapped. If that exceeds the width, each row is
    printed as a record: a line per column, the heading before the value.
    """

    def __init__(self, *headers: str, **options: Any) -> None:
        super().__init__(**options)
        for header in headers:
            self.add_column(header)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Render the table, or its records if the terminal is too narrow."""
        wide = options.update(max_width=UNBOUNDED)
        measures = [_measured(console, wide, column) for column in self.columns]
        # What the table takes besides its columns: borders and padding.
        frame = self.__rich_measure__(console, wide).maximum - sum(measure.maximum for measure in measures)
        available = options.max_width - frame
        # A column of IRIs has a minimum as long as the longest IRI; folded, it is legible in less.
        least = [min(measure.minimum, LEGIBLE) for measure in measures]
        if sum(least) > available:
            yield from self._records(options)
            return
        for column, width in zip(
            self.columns, shares(least, [measure.maximum for measure in measures], available), strict=True
        ):
            column.width, column.overflow = width, "fold"
        yield from super().__rich_console__(console, options)

    def _records(self, options: ConsoleOptions) -> Iterator[Table | Text]:
        if self.title:
            yield Text.from_markup(self.title, style="italic") if isinstance(self.title, str) else self.title
        yield Text(
            f"{options.max_width} characters are too few for {len(self.columns)} columns: a line each", style="dim"
        )
        for cells in zip(*(column.cells for column in self.columns), strict=True):
            record = Table.grid(padding=(0, 2, 0, 0))
            record.add_column(style="bold")
            record.add_column(overflow="fold")
            for column, cell in zip(self.columns, cells, strict=True):
                if cell:
                    record.add_row(column.header, cell)
            yield Text()
            yield record


def _measured(console: Console, options: ConsoleOptions, column: Column) -> Measurement:
    """The longest word and the longest line of a column, its heading included."""
    parts = [Measurement.get(console, options, part) for part in (column.header, *column.cells)]
    return Measurement(max(part.minimum for part in parts), max(part.maximum for part in parts))


def shares(least: Sequence[int], widest: Sequence[int], width: int) -> list[int]:
    """Widths from ``least`` to ``widest`` that use the available width: the narrowest columns grow first.

    Example: least 3, 5, 16 and widest 4, 40, 80 in a width of 50 give 4, 23, 23.
    """
    widths = list(least)
    for _ in range(min(width, sum(widest)) - sum(least)):
        growing = [place for place, width in enumerate(widths) if width < widest[place]]
        if not growing:
            break
        widths[min(growing, key=widths.__getitem__)] += 1
    return widths
