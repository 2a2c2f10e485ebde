"""A reproduction as one self-contained page, and as tables for the terminal."""

from collections.abc import Iterator
from pathlib import Path

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from rich.console import RenderableType
from rich.markup import escape
from rich.table import Table as RichTable

from streamgauge.report import theme
from streamgauge.report.reproduce.result import Line, Reproduction, Section, Table, agreed

SIGN = {True: "✓", False: "✗", None: ""}
WORD = {True: "as published", False: "not as published", None: "not compared"}


def page(found: Reproduction) -> str:
    """One HTML file as text, with everything in it."""
    own, shared = (PackageLoader(name, "templates") for name in ("streamgauge.report.reproduce", "streamgauge.report"))
    environment = Environment(
        loader=ChoiceLoader([own, shared]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("reproduce.html.j2").render(
        found=found,
        right=found.compared[0] == found.compared[1],
        tally=tally,
        words=WORD,
        light=Markup(theme.variables("light")),
        dark=Markup(theme.variables("dark")),
        plot_css=Markup(theme.plot_css()),
    )


def write(found: Reproduction, path: Path) -> None:
    """Write the page (UTF-8), replacing what is there; OSError when that fails."""
    path.write_text(page(found), encoding="utf-8")


def tally(table: Table) -> str:
    """How many of a table's values came out, in words; empty when none is compared."""
    same, of = agreed(table.lines)
    return f"{same:,} of {of:,} as published" if of else ""


def shown(found: Reproduction) -> Iterator[RenderableType]:
    """The same for the terminal."""
    yield f"[bold]{escape(found.title)}[/bold]\n{escape(found.source)}"
    for section in found.sections:
        yield from _section(section)
    style = "green" if found.compared[0] == found.compared[1] else "red"
    yield f"[{style}]{escape(found.headline)}[/{style}]"


def _section(section: Section) -> Iterator[RenderableType]:
    yield f"\n[bold]{escape(section.heading)}[/bold]"
    yield from map(escape, section.sentences)
    for table in section.tables:
        yield _table(table)
        if table.note:
            yield f"[dim]{escape(table.note)}[/dim]"


def _table(table: Table) -> RichTable:
    compared = any(line.agrees is not None for line in table.lines)
    shown = RichTable(
        *map(escape, table.columns), *([""] if compared else []), title=f"{table.heading} {tally(table)}".strip()
    )
    for line in table.lines:
        shown.add_row(*map(escape, line.cells), *([_sign(line)] if compared else []))
    return shown


def _sign(line: Line) -> str:
    style = {True: "green", False: "red", None: "dim"}[line.agrees]
    return f"[{style}]{SIGN[line.agrees]}[/{style}]"
