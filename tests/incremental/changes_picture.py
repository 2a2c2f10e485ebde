"""A picture of how ``live`` answers: the change that each operator passes on when the window of a query slides."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from html import escape

from streamgauge.incremental.observation import PlanStep, plan_steps
from streamgauge.incremental.operators import Bag
from streamgauge.model.element import StreamElement
from streamgauge.model.query import ContinuousQuery
from streamgauge.model.terms import Term, Triple, is_iri, lexical
from streamgauge.report.timeline import LINE, drawn
from tests.incremental.evaluation import Evaluator

FROM_MS, TO_MS, SIZE_MS = 5_000, 10_000, 10_000
"""The window of the picture starts at the one, then at the other."""
NAME_AT, COLUMNS_AT, CHANGE_AT, TOP = 24, 200, 420, 66
"""Pixels: where operators, their columns and changes are written, and where the first line is."""
GAP = 14
"""Pixels of an arrow between two operators."""


class ChangesPanel:
    """The operators of a query, inputs first, each with the change of its output."""

    judged = None

    def __init__(self, steps: Sequence[PlanStep], changes: dict[int, Bag], came: int, left: int) -> None:
        self._steps, self._changes = steps[::-1], changes
        self._window = f"{came} triples come, {left} leave"

    @property
    def height(self) -> int:
        """Pixels of the whole."""
        lines = sum(len(self._lines(step)) for step in self._steps)
        return TOP + LINE * (lines + 1) + GAP * len(self._steps)

    def marks(self) -> Iterator[str]:
        """The elements of the SVG."""
        yield f'<text class="name" x="0" y="22">{TITLE}</text>'
        yield from _line(44, ("operator", "columns", "change of its output"), "muted")
        y = TOP
        yield from _line(y, ("window", "", self._window))
        for step in self._steps:
            arrow, y = y + 6, y + LINE + GAP
            yield f'<path d="M8 {arrow}V{y - 5}M4 {y - 11}L8 {y - 5}L12 {y - 11}"/>'
            first, *more = self._lines(step)
            yield from _line(y, (step.name, " ".join(f"?{name}" for name in step.variables), first))
            for text in more:
                y += LINE
                yield from _line(y, ("", "", text))

    def _lines(self, step: PlanStep) -> list[str]:
        rows = sorted(self._changes[id(step.operator)].items(), key=str)
        return [f"{'+' if count > 0 else MINUS} {', '.join(map(_short, row))}" for row, count in rows] or ["nothing"]


MINUS = "\N{MINUS SIGN}"
TITLE = (
    f"What each operator passes on when the window slides from [{FROM_MS // 1000}, {(FROM_MS + SIZE_MS) // 1000}) "
    f"to [{TO_MS // 1000}, {(TO_MS + SIZE_MS) // 1000}) s"
)


def _line(y: int, cells: Sequence[str], kind: str = "") -> Iterator[str]:
    style = f' class="{kind}"' if kind else ""
    for x, text in zip((NAME_AT, COLUMNS_AT, CHANGE_AT), cells, strict=True):
        if text:
            yield f'<text{style} x="{x}" y="{y}">{escape(text)}</text>'


def _short(term: Term) -> str:
    return ":" + term.rpartition("/")[2].rstrip(">") if is_iri(term) else lexical(term)


def changes_picture(query: ContinuousQuery, stream: Iterable[StreamElement]) -> str:
    """The SVG for a query over a stream whose window slides once."""
    elements = list(stream)
    evaluator = Evaluator(query.form)
    steps = plan_steps(evaluator.tree.root)
    before, after = (_triples(elements, start, start + SIZE_MS) for start in (FROM_MS, TO_MS))
    evaluator.change(before, ())
    changes: dict[int, Bag] = {}
    for step in steps:
        vars(step.operator)["pull"] = partial(_noted, id(step.operator), step.operator.pull, changes)
    came = [triple for triple in after if triple not in before]
    left = [triple for triple in before if triple not in after]
    evaluator.change(came, left)
    panel = ChangesPanel(steps, changes, len(came), len(left))
    return drawn(TITLE, [panel], panel.height)


def _noted(place: int, pull: Callable[[], Bag], changes: dict[int, Bag]) -> Bag:
    changes[place] = pull()
    return changes[place]


def _triples(elements: Iterable[StreamElement], start: int, end: int) -> list[Triple]:
    return [triple for element in elements if start <= element.time < end for triple in element.added]
