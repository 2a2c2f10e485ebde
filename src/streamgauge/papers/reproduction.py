"""A reproduction: tables and plots with published values beside ours, as a page, for the terminal, step by step.

A long reproduction keeps each step that is done below a folder, so that one that was stopped goes on where it was.
Steps are kept for the data and the version that they were made of, and only until the reproduction is whole: the next
one computes all values again.
"""

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final, TypeVar

from jinja2 import PackageLoader
from rich.console import RenderableType
from rich.markup import escape

from streamgauge.formats.fields import FieldError, decode, encode
from streamgauge.formats.run import RunError, read_json, write_json
from streamgauge.report.document import swatch
from streamgauge.report.sections import PageSection, PageStyle, PageTable, TableLine, render, rich_table

WORD: Final = {True: "as published", False: "not as published", None: "not compared"}
_FORMAT: Final = "streamgauge reproduction step"
_VERSION: Final = 1

T = TypeVar("T")

Tell = Callable[[str, float], None]
"""Receives what is being done and how far it is, 0 to 1."""


@dataclass(frozen=True)
class Reproduction:
    """A paper's figures beside ours; ``data`` is the same for programs, ``labels`` name the plots' series."""

    title: str
    source: str
    sections: tuple[PageSection, ...]
    data: Mapping[str, Any] = field(default_factory=dict)
    labels: tuple[str, ...] = ()

    @property
    def compared(self) -> tuple[int, int]:
        """Counts of published values that came out, and of those that were compared."""
        lines = [line for section in self.sections for table in section.tables for line in table.lines]
        return agreed(lines)

    @property
    def headline(self) -> str:
        """The outcome in a sentence."""
        same, of = self.compared
        if not of:
            return "Figures measured here, beside the published ones."
        if same == of:
            return f"All {of:,} published values that could be compared come out."
        return f"{same:,} of {of:,} published values that could be compared come out."


def agreed(lines: Sequence[TableLine]) -> tuple[int, int]:
    """Counts of the lines that agree, and of those that were compared."""
    told = [line.agrees for line in lines if line.agrees is not None]
    return sum(told), len(told)


def page(found: Reproduction) -> str:
    """One HTML file as text, with everything in it."""
    own = PackageLoader("streamgauge.papers", "templates")
    swatches = [swatch(index) for index in range(len(found.labels))]
    look = PageStyle("Streamgauge reproduction", found.title, found.headline, WORD, tally, found.labels, swatches)
    right = found.compared[0] == found.compared[1]
    return render("reproduce.html.j2", look, found.sections, own, found=found, right=right)


def write(found: Reproduction, path: Path) -> None:
    """Write the page (UTF-8), replacing what is there; OSError when that fails."""
    path.write_text(page(found), encoding="utf-8")


def tally(table: PageTable) -> str:
    """The share of a table's values that came out, in words; empty when none is compared."""
    same, of = agreed(table.lines)
    return f"{same:,} of {of:,} as published" if of else ""


def shown(found: Reproduction) -> Iterator[RenderableType]:
    """The reproduction for the terminal."""
    yield f"[bold]{escape(found.title)}[/bold]\n{escape(found.source)}"
    for section in found.sections:
        yield f"\n[bold]{escape(section.heading)}[/bold]"
        yield from map(escape, section.sentences)
        for table in section.tables:
            yield rich_table(table, tally(table))
            if table.note:
                yield f"[dim]{escape(table.note)}[/dim]"
    style = "green" if found.compared[0] == found.compared[1] else "red"
    yield f"[{style}]{escape(found.headline)}[/{style}]"


class ReproductionSteps:
    """Steps kept below a folder, none where there is no folder; ``data`` are the files that they are made of."""

    def __init__(self, folder: Path | None, data: Path) -> None:
        self._folder = None if folder is None else folder / f"unfinished-{_digest(data)}"

    @property
    def kept(self) -> int:
        """The number of steps that are kept from before."""
        return 0 if self._folder is None else len(list(self._folder.glob("[!.]*.json")))

    def do(self, name: str, kind: type[T], make: Callable[[], T]) -> T:
        """The dataclass ``kind`` that a step gives, as kept, else made now and kept; its fields go into JSON."""
        if self._folder is None:
            return make()
        file = self._folder / f"{name}.json"
        try:
            return decode(kind, read_json(file, _FORMAT, _VERSION)["step"])
        except (RunError, FieldError, KeyError):
            made = make()
        write_json(file, {"format": _FORMAT, "version": _VERSION, "step": encode(made)})
        return made

    def end(self) -> None:
        """Forget the steps, as the reproduction is whole."""
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)


def _digest(data: Path) -> str:
    """A name for the version of Streamgauge and the names, sizes and times of the files of a folder."""
    found = sha256(version("streamgauge").encode())
    for file in sorted(file for file in data.rglob("*") if file.is_file()):
        state = file.stat()
        found.update(f"{file.relative_to(data)} {state.st_size} {state.st_mtime_ns}\n".encode())
    return found.hexdigest()[:16]
