"""Certificates: outcomes compared with the listed deviations; an unlisted one fails, an obsolete one is stale.

Deviations are listed next to the engine in ``deviations.toml`` (docs/conformance.md): names, reasons and sources are
written by hand, findings and cases by ``certify --update``. Outcomes are counted by the features of their tasks.
"""

import json
import tomllib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from pathlib import Path
from typing import TypeAlias

from streamgauge.formats.fields import FieldError, decode
from streamgauge.formats.files import read_text
from streamgauge.model import algebra as al
from streamgauge.model.mistake import MistakeError
from streamgauge.model.query import ContinuousQuery
from streamgauge.model.semantics import Semantics
from streamgauge.query.stamps import uses_timestamp
from streamgauge.query.traversal import KEYWORDS, every_part, every_pattern
from streamgauge.suites.conformance.cases import ConformanceTask
from streamgauge.suites.conformance.runner import ConformanceOutcome, TaskResult
from streamgauge.suites.conformance.shared import SharedValue

HEAD = """# What this engine does differently from its declared semantics (docs/conformance.md). `findings` and `cases`
# are written by `streamgauge certify --update`, which keeps the order of the entries and all else.
"""


Explained: TypeAlias = dict[str, Sequence[str]]
"""Task -> its possible findings."""


class DeviationError(MistakeError, ValueError):
    """An invalid list of deviations; the sentence names file and entry."""


@dataclass(frozen=True)
class Deviation:
    """A way in which an engine deviates: ``findings`` are the oracle's, ``cases`` name the tasks that show them.

    ``flaky`` is the reason why the tasks are sometimes right; empty if they never are.
    """

    name: str
    why: str
    source: str
    findings: tuple[str, ...]
    cases: tuple[str, ...]
    flaky: str = ""


def read_deviations(file: Path | None) -> tuple[Deviation, ...]:
    """The deviations of a file, none without a file; DeviationError."""
    if file is None or not file.exists():
        return ()
    try:
        data = tomllib.loads(read_text(file))
        if set(data) - {"deviation"}:
            raise FieldError(f"{', '.join(sorted(set(data) - {'deviation'}))} is unknown: only [[deviation]] tables")
        deviations = [
            decode(Deviation, table, f"deviation {n}") for n, table in enumerate(data.get("deviation", ()), 1)
        ]
    except ValueError as error:
        raise DeviationError(f"{file}: {error}") from error
    _refuse_twice(file, "name", [deviation.name for deviation in deviations])
    _refuse_twice(file, "case", [case for deviation in deviations for case in deviation.cases])
    return tuple(deviations)


def _refuse_twice(file: Path, what: str, names: Sequence[str]) -> None:
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise DeviationError(f"{file}: {what} {twice[0]!r} is listed twice")


def write_deviations(file: Path, deviations: Iterable[Deviation]) -> None:
    """Write the list without entries that have no case; an empty list removes the file."""
    kept = [deviation for deviation in deviations if deviation.cases]
    if not kept:
        file.unlink(missing_ok=True)
        return
    file.write_text(HEAD + "".join(map(_table, kept)), encoding="utf-8")


def _table(deviation: Deviation) -> str:
    lines = ["", "[[deviation]]"]
    for field in fields(Deviation):
        value = getattr(deviation, field.name)
        if isinstance(value, tuple):
            lines += [f"{field.name} = [", *(f"  {_quoted(item)}," for item in value), "]"]
        # An empty reason is written, too, as a reminder to fill it in; only ``flaky`` may be left out.
        elif value or field.name != "flaky":
            lines.append(f"{field.name} = {_quoted(value)}")
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    # TOML's basic strings have the escapes of JSON.
    return json.dumps(text, ensure_ascii=False)


def updated_deviations(
    listed: Sequence[Deviation],
    explained: Mapping[str, Sequence[str]],
    tried: Iterable[str],
    contradicted: Set[str] = frozenset(),
) -> tuple[Deviation, ...]:
    """The list with the tasks that deviate now, each under an entry with one of its findings.

    That is the entry that lists the task already, else the first. ``explained`` has the possible findings of every
    deviating task. Tasks that no entry explains are covered by as few new entries as possible, by ``contradicted``
    findings only if there are no others; their reasons are to be written by hand. Tasks that were not ``tried`` stay
    where they are.
    """
    left, known = dict(explained), set(tried)
    mine: list[Explained] = []
    for old in listed:
        # First pass: tasks stay where they are listed as long as one of their findings fits, so that an update changes
        # little.
        stays, left = _split(left, {case for case in old.cases if case in left and _shows(old, left[case])})
        mine.append(stays)
    result = []
    for old, stays in zip(listed, mine, strict=True):
        # Second pass: tasks that are new, or whose entry no longer fits, go to the first entry that has one of their
        # findings.
        comes, left = _split(left, {case for case, findings in left.items() if _shows(old, findings)})
        result.append(_kept(old, stays | comes, [case for case in old.cases if case not in known]))
    # A greedy cover: the finding that explains most of the tasks left becomes the next entry.
    while left:
        possible = sorted({finding for findings in left.values() for finding in findings})
        finding = max(
            possible,
            key=lambda finding_: (
                # True sorts above False: a finding that a passed task contradicts is chosen only if there is no other.
                finding_ not in contradicted,
                sum(finding_ in findings for findings in left.values()),
            ),
        )
        new, left = _split(left, {case for case, findings in left.items() if finding in findings})
        result.append(Deviation(finding, "", "", (finding,), tuple(sorted(new))))
    return tuple(result)


def shown(listed: Iterable[Deviation], findings: Sequence[str]) -> bool:
    """Whether an entry has one of the findings."""
    return any(_shows(deviation, findings) for deviation in listed)


def _shows(deviation: Deviation, findings: Sequence[str]) -> bool:
    return not set(deviation.findings).isdisjoint(findings)


def _kept(old: Deviation, explained: Explained, untried: Sequence[str]) -> Deviation:
    """The entry with its current tasks and those that were not tried.

    Findings of untried tasks are unknown, so with any untried task all findings stay.
    """
    shown = [
        finding for finding in old.findings if untried or any(finding in findings for findings in explained.values())
    ]
    return replace(old, findings=tuple(shown), cases=tuple(sorted({*untried, *explained})))


def _split(explained: Explained, taken: Set[str]) -> tuple[Explained, Explained]:
    """Split the tasks into those in ``taken`` and the others."""
    others = {case: findings for case, findings in explained.items() if case not in taken}
    return {case: explained[case] for case in explained if case in taken}, others


DIMENSIONS = ("semantics", "theme", "report", "tick", "R2S", "borders", "windows", "SPARQL")

_FORMS = {al.Select: "SELECT", al.Ask: "ASK", al.Construct: "CONSTRUCT"}


def features(task: ConformanceTask) -> Iterator[tuple[str, str]]:
    """The features of a task as (dimension, value)."""
    yield "semantics", task.profile
    yield "theme", task.case.theme
    yield from _chosen(task.semantics, task.case.query)
    yield from (("windows", kind) for kind in _windows(task.case.query))
    yield from (("SPARQL", word) for word in _sparql(task.case.query))


def _chosen(semantics: Semantics, query: ContinuousQuery) -> Iterator[tuple[str, str]]:
    yield "report", " and ".join(sorted(semantics.report))
    yield "tick", str(semantics.tick)
    yield "R2S", str(query.r2s or semantics.r2s)
    yield "borders", str(semantics.borders)


def _windows(query: ContinuousQuery) -> set[str]:
    kinds = {_kind(window.window.kind, window.window.size, window.window.slide) for window in query.windows}
    if len(query.windows) > 1:
        kinds.add("several")
    if any(window.name is not None for window in query.windows):
        kinds.add("named")
    return kinds


def _kind(kind: str, size: int, slide: int) -> str:
    if kind != "time":
        return kind
    return "tumbling" if size == slide else "sliding"


def _sparql(query: ContinuousQuery) -> set[str]:
    patterns = list(every_pattern(query.form.pattern))
    features_ = {_FORMS[type(query.form)]}
    features_ |= {word for kind, word in KEYWORDS.items() if any(isinstance(pattern, kind) for pattern in patterns)}
    trees = [part for pattern in patterns for part in every_part(pattern)]
    if any(isinstance(part, al.Exists) for part in trees):
        features_.add("EXISTS")
    if uses_timestamp(query.form):
        features_.add("timestamp()")
    if query.static:
        features_.add("static data")
    return features_


class TaskStanding(StrEnum):
    """The standing of a task with respect to the list."""

    PASSED = "passed"
    REFUSED = "refused"
    DEVIATING = "deviating as listed"
    FLAKY = "listed as flaky"
    FAILING = "failing"
    OTHERWISE = "deviating in another way"
    STALE = "stale"


BAD = frozenset({TaskStanding.FAILING, TaskStanding.OTHERWISE, TaskStanding.STALE})


@dataclass(frozen=True)
class CertifiedTask:
    """A task: its outcome, its standing, and the deviation that lists it.

    ``found`` has the findings if none of them is one of the deviation's.
    """

    outcome: ConformanceOutcome
    standing: TaskStanding
    deviation: Deviation | None = None
    found: tuple[str, ...] = ()


@dataclass(frozen=True)
class Certificate:
    """The result of the conformance tasks for an engine.

    ``unknown`` are listed tasks that do not exist, ``bare`` the listed deviations without a reason; ``shared`` are
    values of the semantics that explain several failing tasks.
    """

    engine: str
    stood: tuple[CertifiedTask, ...]
    unknown: tuple[str, ...] = ()
    bare: tuple[str, ...] = ()
    shared: tuple[SharedValue, ...] = ()

    @property
    def good(self) -> bool:
        """Whether nothing fails, and the list is correct and complete."""
        return not self.unknown and not self.bare and not any(task.standing in BAD for task in self.stood)

    @property
    def failing(self) -> tuple[ConformanceOutcome, ...]:
        """The deviating tasks that are unlisted, or listed with other findings."""
        bad = (task.outcome for task in self.stood if task.standing in BAD)
        return tuple(outcome for outcome in bad if outcome.kind is TaskResult.WRONG)

    @property
    def passed(self) -> tuple[ConformanceOutcome, ...]:
        """The tasks with right answers."""
        return tuple(task.outcome for task in self.stood if task.outcome.kind is TaskResult.PASSED)

    def counts(self) -> Counter[TaskStanding]:
        """The number of tasks per standing."""
        return Counter(task.standing for task in self.stood)

    def tally(self) -> Mapping[tuple[str, str], Counter[TaskStanding]]:
        """The number of tasks per feature, a (dimension, value), and standing."""
        counts: dict[tuple[str, str], Counter[TaskStanding]] = defaultdict(Counter)
        for task in self.stood:
            for feature in features(task.outcome.asked):
                counts[feature][task.standing] += 1
        return counts


def certificate(
    engine: str,
    outcomes: Iterable[ConformanceOutcome],
    listed: Sequence[Deviation],
    every: bool,
    explain: Callable[[ConformanceOutcome], Sequence[str]],
) -> Certificate:
    """Compare the outcomes with the list; with ``every``, all tasks ran, so that unknown listed ones are found.

    ``explain`` returns the findings of a deviating task, one of which must be listed with it, unless it is flaky.
    """
    by_task = {case: deviation for deviation in listed for case in deviation.cases}
    stood = tuple(_stood(outcome, by_task.get(outcome.name), explain) for outcome in outcomes)
    names = {task.outcome.name for task in stood}
    unknown = tuple(case for case in by_task if case not in names) if every else ()
    return Certificate(engine, stood, unknown, tuple(deviation.name for deviation in listed if not deviation.why))


def _stood(
    outcome: ConformanceOutcome, deviation: Deviation | None, explain: Callable[[ConformanceOutcome], Sequence[str]]
) -> CertifiedTask:
    if deviation is not None and not deviation.flaky and outcome.kind is TaskResult.WRONG:
        findings = tuple(explain(outcome))
        if not shown((deviation,), findings):
            return CertifiedTask(outcome, TaskStanding.OTHERWISE, deviation, findings)
    standing = _STANDING[None if deviation is None else bool(deviation.flaky)]
    return CertifiedTask(outcome, standing[outcome.kind], deviation)


_STANDING: Mapping[bool | None, Mapping[TaskResult, TaskStanding]] = {
    None: dict(zip(TaskResult, (TaskStanding.PASSED, TaskStanding.REFUSED, TaskStanding.FAILING), strict=True)),
    True: dict(zip(TaskResult, (TaskStanding.FLAKY, TaskStanding.STALE, TaskStanding.FLAKY), strict=True)),
    False: dict(zip(TaskResult, (TaskStanding.STALE, TaskStanding.STALE, TaskStanding.DEVIATING), strict=True)),
}
"""The standing of a passed, refused or wrong task: if unlisted (``None``), flaky (true), listed (false)."""
