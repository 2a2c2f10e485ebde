"""An engine's recorded answers to the playground's query, judged against A, with the semantics or fault behind them.

Answers are pasted as lines of the pipe, or read from a run folder in the workbench's folder (``recorded_runs``).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from markupsafe import Markup

from streamgauge.formats.lines import LineError, decode_output
from streamgauge.incremental.budget import TooMuchError
from streamgauge.model.answer import Answer
from streamgauge.model.mistake import MistakeError
from streamgauge.model.phrases import counted
from streamgauge.model.run import Run, RunHeader
from streamgauge.model.semantics import Origin, Semantics
from streamgauge.model.verdict import Judgement, Verdict, WindowVerdict
from streamgauge.oracle.diagnosis.diagnose import Explained, explained
from streamgauge.oracle.diagnosis.models import Case
from streamgauge.oracle.expected.reports import definition
from streamgauge.oracle.judging.judge import first_time
from streamgauge.oracle.judging.nothing_due import over_nothing
from streamgauge.oracle.judging.oracle import JudgingRules, check
from streamgauge.report.cards import model
from streamgauge.report.lanes import BOX, HEAD, HEADING, Lane, LaneTimeline, Shape, TimeScale, svg
from streamgauge.report.series import state as outcome_of
from streamgauge.report.text import headline, proof
from streamgauge.servers.http.deadlines import DEADLINES
from streamgauge.verification import impatient
from streamgauge.workbench.rooms.playground.evaluation import PlaygroundEvaluation
from streamgauge.workbench.rooms.playground.fields import BASE, fields_of, profile_names
from streamgauge.workbench.rooms.playground.result import GROWTH, PlaygroundResult, joins_widely
from streamgauge.workbench.rooms.playground.state import link
from streamgauge.workbench.rooms.playground.stream_text import Names, StreamTextError

SECONDS: Final = 30.0
"""CPU seconds that a diagnosis may take."""
PATIENCE_S: Final = 5.0
"""CPU seconds after which a search stops with its results so far."""
JUDGED: Final = 60.0
"""Pixels of a lane of judged reports."""
OTHERS: Final = 4
MOST_ORIGINS: Final = 1_000
"""Starts of the first window that are tried."""
SIGNS: Final = {"right": "=", "wrong": "≠", "missed": "\N{MINUS SIGN}", "surplus": "+", "late": "="}
WORDS: Final = {
    "right": "as expected",
    "wrong": "other rows than expected",
    "missed": "expected, and not recorded",
    "surplus": "recorded, and not expected",
    "late": "as expected",
}


@dataclass(frozen=True, slots=True)
class JudgedReport:
    """A report of the recording beside the expected one."""

    instant: int | None
    word: str
    sign: str
    words: str
    expected: int
    recorded: int
    missing: tuple[str, ...]
    surplus: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RecordingDiagnosis:
    """The diagnosis in sentences: ``headline``, the ``parts`` of the likeliest model, ``proof``, ``others``.

    ``second`` is the link of a state whose B is the semantics found, empty where a fault is behind the answers.
    ``trouble`` says why there is none, ``picture`` is the expected reports above the recorded ones.
    """

    headline: str
    judgement: str = ""
    parts: tuple[str, ...] = ()
    proof: str = ""
    others: tuple[str, ...] = ()
    second: str = ""
    reports: tuple[JudgedReport, ...] = ()
    trouble: str = ""
    picture: str = ""

    def as_json(self) -> dict[str, Any]:
        """The diagnosis as JSON values."""
        names = ("headline", "judgement", "parts", "proof", "others", "second", "trouble")
        document = {name: getattr(self, name) for name in names}
        reports = [
            {name: getattr(report, name) for name in ("instant", "word", "expected", "recorded", "missing", "surplus")}
            for report in self.reports
        ]
        return {**document, "reports": reports}


def read_recording(text: str) -> tuple[Answer, ...]:
    """The answers of lines of the pipe; StreamTextError names the line."""
    answers: list[Answer] = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            item = decode_output(line)
        except LineError as error:
            raise StreamTextError(f"line {number} of the recording: {error}", number) from None
        if isinstance(item, Answer):
            answers.append(item)
    return tuple(answers)


def diagnosis(result: PlaygroundResult) -> RecordingDiagnosis:
    """The diagnosis of the state's recording under semantics A; its trouble where there can be none."""
    if result.query is None or result.a is None:
        return RecordingDiagnosis("No diagnosis.", trouble="Put the query, the stream and semantics A right first.")
    try:
        with DEADLINES.within(SECONDS, GROWTH):
            return _diagnosis(result, result.a, read_recording(result.state.recording))
    except TooMuchError as error:
        return RecordingDiagnosis("No diagnosis.", trouble=f"{error}: take a shorter stream or a simpler query.")
    except (MistakeError, RecursionError) as error:
        return RecordingDiagnosis("No diagnosis.", trouble=str(error))


def _diagnosis(result: PlaygroundResult, a: PlaygroundEvaluation, answers: tuple[Answer, ...]) -> RecordingDiagnosis:
    if not answers:
        raise StreamTextError("the recording has no answer: paste a line for each")
    _refuse_long_search(result, a.semantics)
    if joins_widely(a.query, result.stream.elements):
        raise StreamTextError("the query's joins may be too large to be tried often: take fewer elements")
    run = _run(result, a.semantics, answers)
    stream = [element for element in result.stream.elements if element.stream in run.header.query.streams]
    verdict = over_nothing(run, check(run, definition(stream), first_time(stream), JudgingRules()))
    if verdict.judgement is Judgement.UNKNOWN:
        raise StreamTextError(f"the recording cannot be judged: {verdict.reason}")
    reports = _judged(result, verdict)
    if verdict.judgement is not Judgement.WRONG:
        message = f"Your engine answers as {a.declared.name} should: all {counted(len(reports), 'report')} come out."
        return RecordingDiagnosis(message, str(verdict.judgement), reports=reports, picture=_picture(result, reports))
    why = explained(run, stream, impatient(PATIENCE_S))
    return _told(result, run, replace(verdict, diagnosis=why.diagnosis), why, reports)


def _refuse_long_search(result: PlaygroundResult, semantics: Semantics) -> None:
    """StreamTextError where t0 has too many candidates to try them all."""
    assert result.query is not None
    longest = max((window.window.size for window in result.query.windows if window.window.kind != "count"), default=0)
    candidates = longest // semantics.time_unit
    if semantics.origin is Origin.SEARCH and candidates > MOST_ORIGINS:
        message = f"t0 has {candidates:,} candidates, {MOST_ORIGINS:,} at most"
        raise StreamTextError(f"{message}: choose a fixed origin, or take a larger time unit")


def _run(result: PlaygroundResult, semantics: Semantics, answers: tuple[Answer, ...]) -> Run:
    assert result.query is not None
    header = RunHeader(
        "Your engine",
        result.query,
        result.state.query,
        result.dialect,
        semantics,
        advanced_to=result.horizon,
        started=0,
    )
    return Run(header, answers, ())


def _told(
    result: PlaygroundResult, run: Run, verdict: Verdict, why: Explained, reports: tuple[JudgedReport, ...]
) -> RecordingDiagnosis:
    models = why.diagnosis.models
    first = tuple(part.sentence for part in models[0]) if models else ()
    # The first model is told in detail; ``equal`` of them are as good as it, and the others have more free choices.
    alike = [
        f"{'Equally good' if at < why.diagnosis.equal else 'With more free choices'}: {model(parts)}"
        for at, parts in enumerate(models[1 : 1 + OTHERS], 1)
    ]
    return RecordingDiagnosis(
        "No model that was tried gives these answers."
        if why.ended and not why.found
        else headline(run.header, verdict),
        str(verdict.judgement),
        first,
        proof(why.diagnosis) if not why.ended else _ended(why),
        tuple(alike),
        _second(result, why),
        reports,
        picture=_picture(result, reports),
    )


def _ended(why: Explained) -> str:
    """The sentence about a search that did not try every model."""
    if why.found:
        return f"{proof(why.diagnosis)} The search ended after {PATIENCE_S:g} s of CPU: other models may fit as well."
    differ = f"{why.diagnosis.differs:,} of {counted(why.diagnosis.reports, 'report')} differ from A"
    return (
        f"The search ended after {PATIENCE_S:g} s of CPU, before all models were tried; {differ}. "
        "Take a shorter stream, or call streamgauge explain on a recorded run: all models are tried there."
    )


def _second(result: PlaygroundResult, why: Explained) -> str:
    """The link that draws the semantics found as B; empty where the model is not a semantics alone."""
    if not why.diagnosis.exact or not why.found:
        return ""
    case = why.found[0].case
    if not _is_plain(case, why.declared):
        return ""
    # With the t0 found: B is drawn without the recording, from which it could be searched.
    semantics = replace(case.semantics, origin=Origin.FIXED, t0=case.t0)
    name = semantics.name if semantics.name in profile_names() else BASE
    return link(replace(result.state, b={"profile": name, **fields_of(semantics)}))


def _is_plain(case: Case, declared: Case) -> bool:
    """Whether a model is another semantics, and nothing else."""
    faults = (case.scopings, case.content_rules, case.keeps, case.gate, case.row_rules, case.report_rules)
    return not any(faults) and (case.query, case.stream) == (declared.query, declared.stream)


def _judged(result: PlaygroundResult, verdict: Verdict) -> tuple[JudgedReport, ...]:
    return tuple(_report(window, result.names) for window in verdict.windows)


def _picture(result: PlaygroundResult, reports: Sequence[JudgedReport]) -> Markup:
    """The expected reports above the recorded ones, on the times of the timeline of A."""
    from streamgauge.workbench.rooms.playground.timeline import timeline

    scale = timeline(replace(result, b=None, pairs=())).scale
    lanes: list[Lane] = []
    for heading, left_out in (("Expected under A", "surplus"), ("Recorded", "missed")):
        top = HEAD + len(lanes) * JUDGED
        shapes = [_box(report, heading, scale, top) for report in reports if report.word != left_out]
        lanes.append(Lane("judged", heading, top, JUDGED, tuple(shapes)))
    label = "Expected and recorded reports on a timeline"
    return svg(LaneTimeline(scale, HEAD + 2 * JUDGED, tuple(lanes)), label, titles=True)


def _box(report: JudgedReport, heading: str, scale: TimeScale, top: float) -> Shape:
    count = report.expected if heading.startswith("Expected") else report.recorded
    at = "" if report.instant is None else f" at {report.instant:,} ms"
    title = f"{heading}{at}, {counted(count, 'row')}: {report.words}"
    # A report without an instant is drawn at the end, as nobody knows where it belongs.
    x = scale.x(scale.last if report.instant is None else report.instant)
    sign = "" if report.word in ("right", "late") else report.sign
    text, href = str(count) if count < 100 else "", f"#report-{report.instant}"
    return Shape(f"report {report.word}", x, top + HEADING + 14, BOX, BOX, title, text, sign, href)


def _report(window: WindowVerdict, names: Names) -> JudgedReport:
    word = outcome_of(window)
    missing, surplus = (
        tuple(" ".join(names.shown(term) for term in row) for row in rows[:5])
        for rows in (window.missing, window.surplus)
    )
    return JudgedReport(
        window.instant, word, SIGNS[word], WORDS[word], window.expected, window.actual, missing, surplus
    )
