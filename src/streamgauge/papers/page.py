"""A reproduction as one self-contained page, and as tables for the terminal."""

from collections.abc import Iterator
from pathlib import Path

from jinja2 import PackageLoader
from rich.console import RenderableType
from rich.markup import escape

from streamgauge.papers.result import Reproduction, agreed
from streamgauge.report.document import swatch
from streamgauge.report.sections import Look, Section, Table, render, rich_table

WORD = {True: "as published", False: "not as published", None: "not compared"}


def page(found: Reproduction) -> str:
    """One HTML file as text, with everything in it."""
    own = PackageLoader("streamgauge.papers", "templates")
    swatches = [swatch(index) for index in range(len(found.labels))]
    look = Look("Streamgauge reproduction", found.title, found.headline, WORD, tally, found.labels, swatches)
    right = found.compared[0] == found.compared[1]
    return render("reproduce.html.j2", look, found.sections, own, found=found, right=right)


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
        yield rich_table(table, tally(table))
        if table.note:
            yield f"[dim]{escape(table.note)}[/dim]"
