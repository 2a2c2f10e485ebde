"""Conformance tasks as pytest tests: selected by command-line options, with outcomes in pytest's terms."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from streamgauge.model.controls import visible
from streamgauge.model.extras import require
from streamgauge.model.mistake import MistakeError
from streamgauge.model.verdict import Verdict
from streamgauge.report.failure import failure_lines
from streamgauge.semantics.profiles import profile as profile_of
from streamgauge.suites.conformance.cases import OWN, ConformanceTask, asked, load
from streamgauge.suites.conformance.certificate import (
    CertifiedTask,
    Deviation,
    TaskStanding,
    certificate,
    read_deviations,
)
from streamgauge.suites.conformance.runner import (
    ConformanceOutcome,
    SetUpError,
    Subject,
    TaskResult,
    TaskRunner,
    engine,
    findings,
    program_subject,
    recorded,
)
from streamgauge.verification import diagnosed

ENGINE, PROGRAM, DEVIATIONS = "--streamgauge-engine", "--streamgauge-program", "--streamgauge-deviations"
CASES, SEMANTICS = "--streamgauge-case", "--streamgauge-semantics"


def subject_of(config: pytest.Config) -> Subject:
    """The engine or program of the command line; UsageError if it cannot run."""
    name, program = config.getoption(ENGINE), config.getoption(PROGRAM)
    if name is not None and program is not None:
        raise pytest.UsageError(f"{ENGINE} and {PROGRAM}: name one of both")
    listed = config.getoption(DEVIATIONS)
    if listed is not None and not Path(listed).exists():
        raise pytest.UsageError(f"{DEVIATIONS} {listed}: there is no such file: streamgauge certify --update writes it")
    try:
        subject = engine(name) if name is not None else program_subject(program, PROGRAM)
        subject = subject if listed is None else replace(subject, deviations=Path(listed))
        read_deviations(subject.deviations)
    except MistakeError as error:
        raise pytest.UsageError(str(error)) from error
    return subject


def tasks_of(config: pytest.Config, subject: Subject) -> tuple[ConformanceTask, ...]:
    """The tasks that the command line selects; UsageError if there is none."""
    case, profile = config.getoption(CASES), config.getoption(SEMANTICS)
    try:
        if profile not in (None, OWN):
            profile_of(profile)
    except MistakeError as error:
        raise pytest.UsageError(f"{SEMANTICS}: {error}") from error
    cases = [case_ for case_ in load() if case is None or case.lower() in case_.name.lower() or case == case_.theme]
    wanted = tuple(task for task in asked(cases, subject.profiles, subject.scale) if profile in (None, task.profile))
    if not wanted:
        raise pytest.UsageError(f"no case has {case!r} in its name, or none is defined under {profile or OWN}")
    return wanted


class ConformanceSession:
    """Runs tasks of a subject against its list of deviations; after a SetUpError all tasks fail with it."""

    def __init__(self, subject: Subject, runner: TaskRunner) -> None:
        self.subject = subject
        self.listed: Sequence[Deviation] = read_deviations(subject.deviations)
        self._runner = runner
        self._unfit: SetUpError | None = None

    def check(self, task: ConformanceTask) -> None:
        """Pass, skip (refused by name), be an expected failure (deviating as listed), or fail with the reason."""
        __tracebackhide__ = True
        stood = self._stood(self._outcome(task))
        reason = stood.outcome.sentence
        if stood.standing is TaskStanding.REFUSED:
            pytest.skip(f"refused: {reason}")
        if stood.deviation is not None and stood.standing in (TaskStanding.DEVIATING, TaskStanding.FLAKY):
            if stood.outcome.kind is TaskResult.WRONG:
                pytest.xfail(f"{stood.deviation.name}: {stood.deviation.why or 'no reason is written'}")
            return
        if stood.standing is not TaskStanding.PASSED:
            raise AssertionError(visible("\n".join(_failure(stood))))

    def complaints(self, tasks: Sequence[ConformanceTask]) -> list[str]:
        """Faults of the list: deviations without a reason, and unknown tasks."""
        names = {task.name for task in tasks}
        bare = [
            f"deviation {deviation.name!r} has no reason: write its why by hand"
            for deviation in self.listed
            if not deviation.why
        ]
        absent = [case for deviation in self.listed for case in deviation.cases if case not in names]
        return [*bare, *(f"{case}: listed, but the suite has no such task" for case in absent)]

    def _outcome(self, task: ConformanceTask) -> ConformanceOutcome:
        __tracebackhide__ = True
        if self._unfit is None:
            try:
                return self._runner.outcome(task)
            except SetUpError as error:
                self._unfit = error
        raise AssertionError(visible(str(self._unfit)))

    def _stood(self, outcome: ConformanceOutcome) -> CertifiedTask:
        (stood,) = certificate(self.subject.name, [outcome], self.listed, False, findings).stood
        return stood


@contextmanager
def conformance_session(subject: Subject) -> Iterator[ConformanceSession]:
    """A session of a subject, whose program ends with the context."""

    def spark():  # type: ignore[no-untyped-def]
        require("spark")
        from streamgauge.spark.session import session

        return session(None)

    with TaskRunner(subject, spark) as runner:
        yield ConformanceSession(subject, runner)


def _failure(stood: CertifiedTask) -> Iterator[str]:
    """The lines of a failure: task, case and reason, standing, and the verdict with windows, rows and diagnosis."""
    outcome, case = stood.outcome, stood.outcome.asked.case
    yield f"{outcome.name}: {stood.standing}"
    yield f"the case: {case.name}: {case.why} ({case.source})"
    if stood.deviation is not None:
        listed = f"listed under {stood.deviation.name!r}"
        if outcome.kind is not TaskResult.WRONG:
            yield f"{listed}, but it is {outcome.kind}: streamgauge certify --update takes it off the list"
            return
        yield f"{listed}: {'; or '.join(stood.deviation.findings)}; but the oracle finds: {'; or '.join(stood.found)}"
    if outcome.run is not None and outcome.verdict is not None:
        yield from failure_lines(outcome.run.header, _explained(outcome, outcome.verdict))


def _explained(outcome: ConformanceOutcome, verdict: Verdict) -> Verdict:
    if outcome.run is None or outcome.run.header.failure:
        return verdict
    return diagnosed(*recorded(outcome), verdict)
