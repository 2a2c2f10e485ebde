"""Papers as data: published figures with their places, claims with their tolerances, and a claim beside our value.

A paper's folder has ``published.toml`` (every figure with its page, section, figure or table) and ``claims.toml``
(each claim in words, the published value, how far ours may be off, how ours is measured, why ours may differ).
One more claim is one more file, ``claims/NAME.toml``: the same fields, and ``value``, the keys that lead to ours in
the reproduction's JSON, as ``value = ["runs", "together/incremental", "all", "made", "mean"]``.

Example of a claim: ``published = "more than 10 times"`` with ``tolerance = { more_than = 10 }`` holds for 33.3 and not
for 9; with ``tolerance = { near = [0.56, 0.2] }`` for all values from 0.36 to 0.76.
"""

import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from streamgauge import papers
from streamgauge.papers.reproduction import Reproduction
from streamgauge.report.numbers import NOTHING, number
from streamgauge.report.sections import PageSection, PageTable, TableLine

Ours = float | str | Sequence[Any]
"""Our value, or a sequence of values that all have to be within the tolerance."""

COLUMNS: Final = ("claim", "published", "ours", "tolerance", "in the paper", "why it differs")


def _each(test: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    """The test for a value, or for every value of a sequence."""
    return lambda ours, bound: all(test(one, bound) for one in (ours if isinstance(ours, list | tuple) else (ours,)))


def _order(ours: Sequence[Any], direction: str) -> bool:
    """Whether values rise or fall from one to the next; ``not falling`` lets neighbours be equal."""
    if direction == "not falling":
        return all(left <= right for left, right in pairwise(ours))
    return all(left < right if direction == "rising" else left > right for left, right in pairwise(ours))


_TESTS: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "at_most": _each(lambda ours, bound: bool(ours <= bound)),
    "at_least": _each(lambda ours, bound: bool(ours >= bound)),
    "more_than": _each(lambda ours, bound: bool(ours > bound)),
    "less_than": _each(lambda ours, bound: bool(ours < bound)),
    "between": _each(lambda ours, ends: bool(ends[0] <= ours <= ends[1])),
    "near": _each(lambda ours, around: bool(abs(ours - around[0]) <= around[1])),
    "factor": _each(lambda ours, around: bool(1 / around[1] < ours / around[0] < around[1])),
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
    """A published value and its place in the paper; ``note`` says how to read the value."""

    place: str
    value: Any
    unit: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class Claim:
    """A sentence of a paper with its published value as text, its tolerance, and how ours is measured.

    ``tolerance`` has one or more of the tests above, all of which must hold; none for a claim that is only shown.
    ``told`` is the tolerance in words where the test does not say enough. ``counts`` is false where the paper's
    machine decides about the value: a difference is explained, not counted. Texts may have ``{names}``.
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
        """Whether our value is within the tolerance, ``None`` where there is none."""
        return all(_TESTS[name](ours, bound) for name, bound in self.tolerance.items()) if self.tolerance else None

    @property
    def tolerated(self) -> str:
        """The tolerance in words."""
        bounds = ((name, bound if isinstance(bound, list) else [bound]) for name, bound in self.tolerance.items())
        return self.told or ", ".join(_WORDS[name].format(*map(_plain, bound)) for name, bound in bounds) or NOTHING

    def beside(self, ours: Ours | None, said: str = NOTHING, **names: object) -> "ComparedClaim":
        """The claim with our value, as ``said``; ``None`` for what was not measured."""
        texts = {"ours": said, **names}
        holds = None if ours is None else self.within(ours)
        return ComparedClaim(
            self.claim.format(**texts),
            self.place,
            self.published.format(**texts),
            self.tolerated.format(**texts),
            said,
            holds if self.counts else None,
            self.why.format(**texts) if holds is False else "",
        )


def _plain(bound: object) -> str:
    return f"{bound:,g}" if isinstance(bound, int | float) else str(bound)


@dataclass(frozen=True, slots=True)
class ComparedClaim:
    """A claim beside our value; ``why`` says why ours is off, where ours is."""

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


def claims_table(heading: str, compared: Iterable[ComparedClaim], note: str = "") -> PageTable:
    """Claims as a table: value, ours, tolerance, place, and why ours differs where one does."""
    lines = [each.line for each in compared]
    if any(line.cells[-1] for line in lines):
        return PageTable(heading, COLUMNS, tuple(lines), note)
    return PageTable(heading, COLUMNS[:-1], tuple(TableLine(line.cells[:-1], line.agrees) for line in lines), note)


@dataclass(frozen=True)
class Paper:
    """A paper: the name of its folder, source as a reference, its figures and claims by their names."""

    name: str
    source: str
    figures: Mapping[str, PublishedFigure]
    claims: Mapping[str, Claim]

    def value(self, figure: str) -> Any:
        """A published value."""
        return self.figures[figure].value

    def reproduction(
        self, title: str, sections: Iterable[PageSection], data: Mapping[str, Any], labels: tuple[str, ...] = ()
    ) -> Reproduction:
        """The reproduction of these sections, and of the claims that have files of their own."""
        own = tuple(filed_claims(self.name, data))
        more = (PageSection("further-claims", "Further claims", (), (claims_table("", own),)),) if own else ()
        return Reproduction(title, self.source, (*sections, *more), data, labels)


def filed_claims(name: str, data: Mapping[str, Any]) -> Iterator[ComparedClaim]:
    """The claims of a paper's ``claims/*.toml`` beside the values in a reproduction's JSON, by the files' names."""
    for home in papers.__path__:
        for file in sorted((Path(home) / name / "claims").glob("*.toml")):
            fields = tomllib.loads(file.read_text(encoding="utf-8"))
            keys = fields.pop("value")
            ours = _looked_up(data, keys)
            said = number(ours) if isinstance(ours, int | float) else NOTHING if ours is None else str(ours)
            yield Claim(**fields).beside(ours, said)


def _looked_up(data: Any, keys: Sequence[str | int]) -> Any:
    """The value below these keys, ``None`` where one of them is absent (as in a part that was not done)."""
    for key in keys:
        try:
            data = data[key]
        except (KeyError, IndexError, TypeError):
            return None
    return data


@cache
def paper(name: str) -> Paper:
    """The paper whose folder has this name; KeyError, TypeError where its files lack a field or have one too many."""
    home = Path(papers.__path__[0]) / name
    published = tomllib.loads((home / "published.toml").read_text(encoding="utf-8"))
    claims = tomllib.loads((home / "claims.toml").read_text(encoding="utf-8"))
    figures = {key: PublishedFigure(**fields) for key, fields in published["figures"].items()}
    return Paper(name, published["source"], figures, {key: Claim(**fields) for key, fields in claims.items()})
