"""Published rule sets: judging exactly as others did, quirks included; each paper with a ``rules`` module gives one."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pkgutil import iter_modules
from typing import Protocol, cast

from streamgauge import papers
from streamgauge.model.element import StreamElement
from streamgauge.model.mistake import MistakeError
from streamgauge.model.phrases import offered, spelled
from streamgauge.model.run import Run
from streamgauge.model.verdict import Verdict


class UnknownRulesError(MistakeError, ValueError):
    """A name that no rule set has; the sentence lists those that there are."""


class Equality(StrEnum):
    """When two solutions are equal: as CSRBench's code has it, or as its paper means it."""

    NUMBERS = "a solution with numbers by its numbers alone"
    WHOLE = "whole solutions"


@dataclass(frozen=True, slots=True)
class RuleSettings:
    """The choices that a published oracle left to its user; a rule set ignores those that it did not have.

    ``gracious`` and ``single_result`` are YABench's (its own default for gracious was true), ``time_unit`` (ms) is
    CSRBench's system.timeunit; ``equality`` says whether its quirk counts, as it did. ``progress`` is told how much
    is done and how much there is.
    """

    gracious: bool = False
    single_result: bool = True
    time_unit: int = 1000
    equality: Equality = Equality.NUMBERS
    progress: Callable[[int, int], None] = lambda _done, _of: None


class RuleSet(Protocol):
    """The members of a rule set's module: a line about it, and its judge."""

    ABOUT: str

    def judge(self, run: Run, elements: Sequence[StreamElement], settings: RuleSettings) -> Verdict:
        """The verdict on a run by these rules, its ``rules`` field naming them."""
        ...


def names() -> tuple[str, ...]:
    """The names of the rule sets, sorted."""
    return tuple(sorted(_modules()))


def judge_as(
    name: str, run: Run, elements: Sequence[StreamElement], settings: RuleSettings = RuleSettings()
) -> Verdict:
    """The verdict on a run by a published rule set; UnknownRulesError lists the names that there are."""
    if (found := spelled(name, names())) is None:
        raise UnknownRulesError(f"there are no rules named {name!r}: {offered(name, names())}")
    return cast(RuleSet, import_module(_modules()[found])).judge(run, elements, settings)


@cache
def _modules() -> dict[str, str]:
    """The rule sets' modules by their papers' names."""
    found = {each.name: f"{papers.__name__}.{each.name}.rules" for each in iter_modules(papers.__path__) if each.ispkg}
    return {name: module for name, module in found.items() if find_spec(module)}
