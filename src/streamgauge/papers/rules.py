"""Published rule sets, which judge exactly as others did, with their quirks; a paper's ``rules`` module is one."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pkgutil import iter_modules
from typing import Protocol, cast

from streamgauge import papers
from streamgauge.model import algebra as a
from streamgauge.model.element import StreamElement
from streamgauge.model.mistake import MistakeError
from streamgauge.model.phrases import offered, spelled
from streamgauge.model.query import ContinuousQuery
from streamgauge.model.run import Run
from streamgauge.model.terms import Row, Triple
from streamgauge.model.verdict import Judgement, Verdict
from streamgauge.oracle.judging.metrics import last_answer
from streamgauge.semantics.refusal import RefusedError
from streamgauge.sparql.algebra import answer
from streamgauge.sparql.bgp import Dataset, IndexedGraph


class WindowQuery:
    """A query with one time-based window, evaluated over window contents by ``rows``."""

    def __init__(self, query: ContinuousQuery, rules: str) -> None:
        """RefusedError for what the rule set of that name did not know."""
        _refuse(query, rules)
        assert isinstance(query.form, a.Select)
        self.variables = query.form.variables
        named = query.windows[0].name
        self._name = f"<{named}>" if named else None
        self._form, self._background = query.form, query.static

    def rows(self, content: Iterable[Triple]) -> tuple[Row, ...]:
        """The bag of solutions over these triples and the static data."""
        triples = tuple(content)
        named = {self._name: IndexedGraph(triples)} if self._name else {}
        return answer(self._form, Dataset(IndexedGraph((*self._background, *triples)), named))


def in_sequence(elements: Sequence[StreamElement], query: ContinuousQuery, rules: str) -> list[StreamElement]:
    """The window's elements in order of sequence; RefusedError for what the rule set did not support."""
    wanted = query.windows[0].stream
    own = [element for element in elements if element.stream == wanted]
    if elements and not own:
        raise RefusedError(f"the query's window is over {wanted}, the elements are of {elements[0].stream}: name one")
    ordered = sorted(own, key=lambda element: element.sequence)
    last: int | None = None
    for element in ordered:
        if element.removed or element.until is not None:
            raise RefusedError(f"element {element.sequence} of {element.stream} ends: {rules} knows added triples only")
        if last is not None and element.time < last:
            raise RefusedError(
                f"element {element.sequence} goes back from {last} to {element.time} ms: {rules} knows streams in order"
            )
        last = element.time
    return ordered


def _refuse(query: ContinuousQuery, rules: str) -> None:
    if len(query.windows) != 1:
        raise RefusedError(f"the query has {len(query.windows)} windows: {rules} knows one")
    if query.window.kind != "time":
        raise RefusedError(f"the query's window is a {query.window.kind} window: {rules} knows time-based ones")
    if not isinstance(query.form, a.Select):
        raise RefusedError(f"the query is not a SELECT: {rules} knows no other form")


class UnknownRulesError(MistakeError, ValueError):
    """An unknown rule set; the sentence lists the known ones."""


class Equality(StrEnum):
    """The equality of two solutions: as CSRBench's code has it, or as its paper means it."""

    NUMBERS = "a solution with numbers by its numbers alone"
    WHOLE = "whole solutions"


@dataclass(frozen=True, slots=True)
class RuleSettings:
    """Choices that a published oracle left to its user; a rule set ignores those that it did not have.

    ``gracious`` and ``single_result`` are YABench's (its own default for gracious was true), ``time_unit`` (ms) is
    CSRBench's system.timeunit; ``equality`` is its comparison of solutions. ``progress`` receives (done, total).
    """

    gracious: bool = False
    single_result: bool = True
    time_unit: int = 1000
    equality: Equality = Equality.NUMBERS
    progress: Callable[[int, int], None] = lambda _done, _of: None


class RuleSet(Protocol):
    """The contract of a rule set's module: a line about it, and its judge; RefusedError explains an unknown verdict."""

    ABOUT: str

    def judge(self, run: Run, elements: Sequence[StreamElement], settings: RuleSettings) -> Verdict:
        """The verdict on a run by these rules, named in its ``rules`` field."""


def names() -> tuple[str, ...]:
    """The names of the rule sets, sorted."""
    return tuple(sorted(_modules()))


def judge_as(
    name: str, run: Run, elements: Sequence[StreamElement], settings: RuleSettings = RuleSettings()
) -> Verdict:
    """The verdict on a run by a published rule set; UnknownRulesError."""
    if (rules := spelled(name, names())) is None:
        raise UnknownRulesError(f"there are no rules named {name!r}: {offered(name, names())}")
    try:
        return cast(RuleSet, import_module(_modules()[rules])).judge(run, elements, settings)
    except RefusedError as error:
        unknown = Verdict(Judgement.UNKNOWN, None, None, 0.0, 0.0, 0, 0, 0, None, (), ())
        return replace(unknown, reason=str(error), rules=rules, last_answer=last_answer(run))


@cache
def _modules() -> dict[str, str]:
    """The rule sets' modules by paper."""
    modules = {
        module.name: f"{papers.__name__}.{module.name}.rules"
        for module in iter_modules(papers.__path__)
        if module.ispkg
    }
    # A paper need not have rules of its own.
    return {name: module for name, module in modules.items() if find_spec(module)}
