"""Papers as data: published figures and claims with their places, compared with ours, step by step.

A paper's folder has ``published.toml`` (every figure with its page, section, figure or table), ``claims.toml`` (each
claim in words, the published value, the tolerance for ours, how ours is measured, and why it may differ), and
``page.toml`` (headings, sentences and columns of its page).

A further claim is a further file, ``claims/NAME.toml``, with the same fields and ``value``, the keys of our value in
the reproduction's JSON: ``value = ["runs", "together/incremental", "all", "made", "mean"]``.

Example of a claim: ``published = "more than 10 times"`` with ``tolerance = { more_than = 10 }`` holds for 33.3 and not
for 9; with ``tolerance = { near = [0.56, 0.2] }`` for all values from 0.36 to 0.76.

The steps of a long reproduction are stored in a folder: a stopped one is resumed, a complete one is shown again
immediately. Steps are valid for the data and the code that produced them.
"""

import shutil
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, TypeVar

from jinja2 import PackageLoader
from rich.console import RenderableType
from rich.markup import escape

from streamgauge import papers
from streamgauge.formats.fields import FieldError, decode, encode
from streamgauge.formats.run import RunError, read_json, write_json
from streamgauge.report.numbers import NOTHING, number
from streamgauge.report.plots import Figure
from streamgauge.report.sections import PageSection, PageStyle, PageTable, TableLine, agreed, render, rich_table

WORD: Final = {True: "as published", False: "not as published", None: "not compared"}
_FORMAT: Final = "streamgauge reproduction step"
_VERSION: Final = 1

T = TypeVar("T")

Tell = Callable[[str, float], None]
"""Receives the current step and the share done, 0 to 1."""


@dataclass(frozen=True)
class Reproduction:
    """A paper's figures next to ours; ``data`` is the same as JSON, ``labels`` name the plots' series."""

    title: str
    source: str
    sections: tuple[PageSection, ...]
    data: Mapping[str, Any] = field(default_factory=dict)
    labels: tuple[str, ...] = ()

    @property
    def compared(self) -> tuple[int, int]:
        """The numbers of published values that agree, and that were compared."""
        lines = [line for section in self.sections for table in section.tables for line in table.lines]
        return agreed(lines)

    @property
    def look(self) -> PageStyle:
        """The frame of the page."""
        return PageStyle("Streamgauge reproduction", self.title, self.headline, WORD, self.labels)

    @property
    def headline(self) -> str:
        """The outcome in a sentence."""
        same, of = self.compared
        if not of:
            return "Figures measured here, beside the published ones."
        if same == of:
            return f"All {of:,} published values that could be compared come out."
        return f"{same:,} of {of:,} published values that could be compared come out."


@cache
def _templates() -> PackageLoader:
    return PackageLoader("streamgauge.papers", "templates")


def page(reproduction: Reproduction) -> str:
    """The page as one self-contained HTML file."""
    right, own = reproduction.compared[0] == reproduction.compared[1], _templates()
    look, sections = reproduction.look, reproduction.sections
    return render("reproduce.html.j2", look, sections, own, found=reproduction, right=right)


def write(reproduction: Reproduction, path: Path) -> None:
    """Write the page (UTF-8), replacing an existing file; OSError."""
    path.write_text(page(reproduction), encoding="utf-8")


def said_once(sections: Iterable[PageSection]) -> Iterator[PageSection]:
    """The sections without sentences that an earlier section has."""
    printed: set[str] = set()
    for section in sections:
        yield replace(section, sentences=tuple(sentence for sentence in section.sentences if sentence not in printed))
        printed.update(section.sentences)


def shown(reproduction: Reproduction) -> Iterator[RenderableType]:
    """The reproduction for the terminal."""
    yield f"[bold]{escape(reproduction.title)}[/bold]\n{escape(reproduction.source)}"
    for section in reproduction.sections:
        yield f"\n[bold]{escape(section.heading)}[/bold]"
        yield from map(escape, section.sentences)
        for table in section.tables:
            yield rich_table(table, reproduction.look.tally(table))
            if table.note:
                yield f"[dim]{escape(table.note)}[/dim]"
    style = "green" if reproduction.compared[0] == reproduction.compared[1] else "red"
    yield f"[{style}]{escape(reproduction.headline)}[/{style}]"


class ReproductionSteps:
    """Steps stored in a folder, if there is one; ``data`` are the files on which they depend.

    ``again`` discards a complete earlier reproduction; steps of a stopped one are used.
    """

    def __init__(self, folder: Path | None, data: Path, *, again: bool = False) -> None:
        self._folder = self._whole = None
        if folder is not None:
            name = _digest(data)
            self._whole = folder / f"whole-{name}"
            if again:
                shutil.rmtree(self._whole, ignore_errors=True)
            # Complete steps are renamed as a whole: a stopped reproduction never passes for a complete one.
            self._folder = self._whole if self._whole.is_dir() else folder / f"unfinished-{name}"

    @property
    def kept(self) -> int:
        """The number of stored steps."""
        return 0 if self._folder is None else len(list(self._folder.glob("[!.]*.json")))

    def do(self, name: str, kind: type[T], make: Callable[[], T]) -> T:
        """A step's result as the dataclass ``kind``: the stored one, else a new one that is stored as JSON."""
        if self._folder is None:
            return make()
        file = self._folder / f"{name}.json"
        try:
            return decode(kind, read_json(file, _FORMAT, _VERSION)["step"])
        # Missing, damaged, or written for another dataclass: the step is done again.
        except (RunError, FieldError, KeyError):
            result = make()
        write_json(file, {"format": _FORMAT, "version": _VERSION, "step": encode(result)})
        return result

    def end(self) -> None:
        """Mark the steps as complete; those of other data and older code are deleted."""
        if self._folder is None or self._whole is None or self._folder == self._whole or not self._folder.is_dir():
            return
        for old in self._whole.parent.glob("whole-*"):
            shutil.rmtree(old, ignore_errors=True)
        self._folder.rename(self._whole)
        self._folder = self._whole


def _digest(data: Path) -> str:
    """A name for Streamgauge's code and the names, sizes and times of the files of a folder."""
    digest = sha256(_code())
    for file in sorted(file for file in data.rglob("*") if file.is_file()):
        state = file.stat()
        # Size and time stand for the content, which may be large.
        digest.update(f"{file.relative_to(data)} {state.st_size} {state.st_mtime_ns}\n".encode())
    return digest.hexdigest()[:16]


@cache
def _code() -> bytes:
    """A digest of the files of the package that affect results, so that new code is not hidden by old results."""
    digest, home = sha256(), Path(papers.__path__[0]).parent
    for file in sorted(file for kind in ("py", "toml", "rq") for file in home.rglob(f"*.{kind}")):
        digest.update(f"{file.relative_to(home)}\n".encode() + file.read_bytes())
    return digest.digest()


Ours = float | str | Sequence[Any]
"""Our value, or a sequence of values that must all be within the tolerance."""

COLUMNS: Final = ("claim", "published", "ours", "tolerance", "in the paper", "why it differs")


def _for_all(test: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    """Apply a test to a value, or to every value of a sequence."""
    return lambda ours, bound: all(test(one, bound) for one in (ours if isinstance(ours, list | tuple) else (ours,)))


def _order(ours: Sequence[Any], direction: str) -> bool:
    """Whether values rise or fall; ``not falling`` allows equal neighbours."""
    if direction == "not falling":
        return all(left <= right for left, right in pairwise(ours))
    return all(left < right if direction == "rising" else left > right for left, right in pairwise(ours))


_TESTS: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "at_most": _for_all(lambda ours, bound: bool(ours <= bound)),
    "at_least": _for_all(lambda ours, bound: bool(ours >= bound)),
    "more_than": _for_all(lambda ours, bound: bool(ours > bound)),
    "less_than": _for_all(lambda ours, bound: bool(ours < bound)),
    "between": _for_all(lambda ours, ends: bool(ends[0] <= ours <= ends[1])),
    "near": _for_all(lambda ours, around: bool(abs(ours - around[0]) <= around[1])),
    # In both directions: ``factor = [100, 2]`` holds for 51 and for 199.
    "factor": _for_all(lambda ours, around: bool(1 / around[1] < ours / around[0] < around[1])),
    "equal": lambda ours, theirs: bool(ours == theirs),
    "order": _order,
}
_WORDS: Final = {
    "at_most": "at most {}", "at_least": "at least {}", "more_than": "more than {}", "less_than": "less than {}",
    "between": "from {} to {}", "near": "{} ± {}", "factor": "{}, by a factor below {}", "equal": "the same",
    "order": "{}",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class PublishedFigure:
    """A published value and its place in the paper; ``note`` explains it."""

    place: str
    value: Any
    unit: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class Claim:
    """A sentence of a paper with its published value as text, its tolerance, and how ours is measured.

    ``tolerance`` has one or more of the tests above, all of which must hold; none for a claim that is only shown.
    ``told`` is the tolerance in words, if the test is not clear enough. ``counts`` is false if the value depends on the
    machine: a difference is explained, but not counted. Texts may have ``{names}``.
    """

    claim: str
    place: str
    published: str
    measured: str
    tolerance: Mapping[str, Any] = field(default_factory=dict)
    told: str = ""
    why: str = ""
    counts: bool = True

    def within(self, ours: Ours) -> bool | None:
        """Whether our value is within the tolerance, ``None`` if there is none."""
        return all(_TESTS[name](ours, bound) for name, bound in self.tolerance.items()) if self.tolerance else None

    @property
    def tolerated(self) -> str:
        """The tolerance in words."""
        bounds = ((name, bound if isinstance(bound, list) else [bound]) for name, bound in self.tolerance.items())
        return self.told or ", ".join(_WORDS[name].format(*map(_plain, bound)) for name, bound in bounds) or NOTHING

    def beside(self, ours: Ours | None, text: str = NOTHING, **names: object) -> "ComparedClaim":
        """The claim with our value, printed as ``text``; ``None`` if it was not measured."""
        texts = {"ours": text, **names}
        holds = None if ours is None else self.within(ours)
        return ComparedClaim(
            self.claim.format(**texts),
            self.place,
            self.published.format(**texts),
            self.tolerated.format(**texts),
            text,
            # None is written as "not compared".
            holds if self.counts else None,
            self.why.format(**texts) if holds is False else "",
        )


def _plain(bound: object) -> str:
    return f"{bound:,g}" if isinstance(bound, int | float) else str(bound)


@dataclass(frozen=True, slots=True)
class ComparedClaim:
    """A claim with our value; ``why`` is the reason if ours is out of tolerance."""

    claim: str
    place: str
    published: str
    tolerance: str
    ours: str
    holds: bool | None
    why: str = ""

    @property
    def line(self) -> TableLine:
        """The claim as a line of the table of claims."""
        return TableLine((self.claim, self.published, self.ours, self.tolerance, self.place, self.why), self.holds)


def claims_table(heading: str, compared: Iterable[ComparedClaim]) -> PageTable:
    """Claims as a table: value, ours, tolerance, place, and reasons for differences, if any."""
    lines = [claim.line for claim in compared]
    # The column of reasons is left out where no line has one.
    if any(line.cells[-1] for line in lines):
        return PageTable(heading, COLUMNS, tuple(lines))
    return PageTable(heading, COLUMNS[:-1], tuple(TableLine(line.cells[:-1], line.agrees) for line in lines))


@dataclass(frozen=True)
class Paper:
    """A paper: its folder's name, reference, figures and claims by name, and the texts of its page (``page.toml``)."""

    name: str
    source: str
    figures: Mapping[str, PublishedFigure]
    claims: Mapping[str, Claim]
    page: Mapping[str, Mapping[str, Any]]

    def value(self, figure: str) -> Any:
        """The published value of a figure."""
        return self.figures[figure].value

    def section(
        self,
        name: str,
        tables: Iterable[PageTable] = (),
        figures: Iterable[Figure] = (),
        sentences: Iterable[str] = (),
        **names: object,
    ) -> PageSection:
        """A section of the page: its sentences with ``names`` filled in, then the ``sentences`` given here."""
        text = self.page["sections"][name]
        own = (sentence.format(**names) for sentence in text.get("sentences", ()))
        place = text.get("id", name)
        return PageSection(place, text["heading"], (*own, *sentences), tuple(tables), tuple(figures))

    def table(
        self, name: str, lines: Iterable[TableLine], columns: Iterable[str] = (), note: str = "", **names: object
    ) -> PageTable:
        """A table of the page with ``names`` filled in; ``columns`` come after those of the page."""
        text = self.page["tables"][name]
        own = (column.format(**names) for column in text["columns"])
        heading = text.get("heading", "").format(**names)
        return PageTable(heading, (*own, *columns), tuple(lines), note or text.get("note", ""))

    def reproduction(
        self, title: str, sections: Iterable[PageSection], data: Mapping[str, Any], labels: tuple[str, ...] = ()
    ) -> Reproduction:
        """The reproduction with these sections, and with the claims in files of their own."""
        own = tuple(filed_claims(self.name, data))
        more = (PageSection("further-claims", "Further claims", (), (claims_table("", own),)),) if own else ()
        return Reproduction(title, self.source, (*sections, *more), data, labels)


def filed_claims(name: str, data: Mapping[str, Any]) -> Iterator[ComparedClaim]:
    """The claims of a paper's ``claims/*.toml`` compared with values in a reproduction's JSON."""
    for home in papers.__path__:
        for file in sorted((Path(home) / name / "claims").glob("*.toml")):
            fields = tomllib.loads(file.read_text(encoding="utf-8"))
            keys = fields.pop("value")
            ours = _looked_up(data, keys)
            text = number(ours) if isinstance(ours, int | float) else NOTHING if ours is None else str(ours)
            yield Claim(**fields).beside(ours, text)


def _looked_up(data: Any, keys: Sequence[str | int]) -> Any:
    """The value below these keys, ``None`` if one is absent (as in a part that did not run)."""
    for key in keys:
        try:
            data = data[key]
        except (KeyError, IndexError, TypeError):
            return None
    return data


@cache
def paper(name: str) -> Paper:
    """The paper of a folder's name; KeyError or TypeError if its files lack a field or have an unknown one."""
    home = Path(papers.__path__[0]) / name
    published, claims, page_ = (
        tomllib.loads((home / f"{file}.toml").read_text(encoding="utf-8")) for file in ("published", "claims", "page")
    )
    figures = {key: PublishedFigure(**fields) for key, fields in published["figures"].items()}
    return Paper(name, published["source"], figures, {key: Claim(**fields) for key, fields in claims.items()}, page_)
