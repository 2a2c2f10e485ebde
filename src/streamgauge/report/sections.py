"""Pages and terminal output of sections: sentences, plots, and tables whose lines may have a judgement."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from jinja2 import BaseLoader, ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from rich.markup import escape

from streamgauge.model.controls import visible
from streamgauge.report import charts
from streamgauge.report.directions import directed
from streamgauge.report.fitting_table import FittingTable
from streamgauge.report.plots import Figure
from streamgauge.report.swatches import swatch

SIGN = {True: "✓", False: "✗", None: ""}


@dataclass(frozen=True)
class TableLine:
    """A line of a table; ``agrees`` is whether our value equals the published one, ``None`` without a comparison.

    ``link`` is the target of the line's name, relative to the page.
    """

    cells: tuple[str, ...]
    agrees: bool | None = None
    details: tuple[str, ...] = ()
    link: str = ""


@dataclass(frozen=True)
class PageTable:
    """A table: heading, columns (the first names the line), lines, and a note below."""

    heading: str
    columns: tuple[str, ...]
    lines: tuple[TableLine, ...]
    note: str = ""


@dataclass(frozen=True)
class PageSection:
    """A section of the page: anchor, heading, sentences, tables and plots."""

    id: str
    heading: str
    sentences: tuple[str, ...]
    tables: tuple[PageTable, ...] = ()
    figures: tuple[Figure, ...] = ()


@dataclass(frozen=True)
class PageStyle:
    """The frame of a page: brand, title, headline, words for judgements; ``labels`` are those of the plots' series."""

    brand: str
    title: str
    headline: str
    words: Mapping[bool | None, str]
    labels: Sequence[str] = ()

    def tally(self, table: PageTable) -> str:
        """How many of a table's judged lines are right, such as ``3 of 4 right``; empty without judgements."""
        right, judged = agreed(table.lines)
        return f"{right:,} of {judged:,} {self.words[True]}" if judged else ""


def agreed(lines: Iterable[TableLine]) -> tuple[int, int]:
    """The numbers of lines that agree, and that were compared."""
    agreements = [line.agrees for line in lines if line.agrees is not None]
    return sum(agreements), len(agreements)


def html(template: str, own: BaseLoader | None = None, **values: object) -> str:
    """A self-contained HTML file; ``own`` loads templates that are not the report's."""
    return visible(
        _environment(own)
        .get_template(template)
        .render(
            light=Markup(charts.variables("light")),
            dark=Markup(charts.variables("dark")),
            plot_css=Markup(charts.plot_css()),
            **values,
        )
    )


@lru_cache(maxsize=8)
def _environment(own: BaseLoader | None) -> Environment:
    """The templates of ``own``, then the report's, compiled once; text is escaped."""
    shared = PackageLoader("streamgauge.report", "templates")
    environment = Environment(
        loader=ChoiceLoader([own, shared]) if own else shared,
        autoescape=True,
        # A misspelt name in a template is an error, not an empty place in the page.
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["directed"] = directed
    return environment


def render(
    template: str, look: PageStyle, sections: Sequence[PageSection], own: BaseLoader | None = None, **more: object
) -> str:
    """A page of sections as a self-contained HTML file."""
    swatches = [swatch(index) for index in range(len(look.labels))]
    return html(template, own, **vars(look), tally=look.tally, swatches=swatches, sections=sections, **more)


def rich_table(table: PageTable, tally: str) -> FittingTable:
    """A table for the terminal, with a sign after lines with a judgement."""
    judged = any(line.agrees is not None for line in table.lines)
    columns = [*map(escape, table.columns), *([""] if judged else [])]
    shown = FittingTable(title=escape(f"{table.heading} {tally}".strip()))
    for column in columns:
        shown.add_column(column)
    for line in table.lines:
        shown.add_row(*map(escape, line.cells), *([_sign(line)] if judged else []))
    return shown


def _sign(line: TableLine) -> str:
    style = {True: "green", False: "red", None: "dim"}[line.agrees]
    return f"[{style}]{SIGN[line.agrees]}[/{style}]"
