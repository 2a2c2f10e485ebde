"""``assert_right``: a test fails with the windows that are not as expected, their rows, and why."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from streamgauge.api import check, load_run
from streamgauge.formats.run import stream_path
from streamgauge.formats.stream import elements
from streamgauge.model.controls import visible
from streamgauge.model.element import StreamElement
from streamgauge.model.run import Run
from streamgauge.model.semantics import Clock
from streamgauge.model.verdict import Judgement, Verdict
from streamgauge.oracle.judging.metrics import by_arrival
from streamgauge.report.failure import failure_lines, passes
from streamgauge.testing.sessions import RecordedSession
from streamgauge.verification import Given, VerifiedRun, diagnosed, judged, verified
from streamgauge.watching.inputs import Query, Stream

Recorded = Run | str | Path | RecordedSession
"""A run, the folder of one, or a session."""


def assert_right(
    given: Recorded | Query,
    stream: Stream | Sequence[Stream] | None = None,
    answers: Iterable[Given] | None = None,
    **options: Any,
) -> Verdict:
    """The verdict where every window was answered as expected and in time; else an AssertionError that says which not.

    ``given`` is a run, its folder or a session, or, with ``stream`` and ``answers``, a query (those of ``verify``).
    ``options`` are those of ``check`` for a run or a folder, those of ``verify`` otherwise. A session is closed.
    The error names each window (borders, instant), the rows that are missing and surplus, and the diagnosis.
    """
    __tracebackhide__ = True
    if answers is not None:
        found = verified(_query(given), _streams(stream), answers, **options)
        return _passed(found, "these answers")
    if isinstance(given, RecordedSession):
        run, fed = given.recorded()
        return _passed(judged(run, fed, **options), f"{run.header.engine} as {run.header.semantics.name}")
    if not isinstance(given, Run | str | Path):
        raise TypeError("assert_right takes a run, a folder or a session; or a query with its stream and its answers")
    run = given if isinstance(given, Run) else load_run(given)
    if stream is not None:
        options["stream"] = stream
    return _passed(_explained(run, check(run, **options), stream), str(run.folder or run.header.engine))


def _query(given: Any) -> Query:
    if isinstance(given, Run | RecordedSession):
        raise TypeError("answers are given beside a query, not beside a run, which has its own")
    query: Query = given
    return query


def _streams(stream: Any) -> Sequence[Stream]:
    """One stream, or several in a tuple."""
    if stream is None:
        raise TypeError("answers are judged against a stream: assert_right(query, stream, answers)")
    return stream if isinstance(stream, tuple) else (stream,)


def _explained(run: Run, verdict: Verdict, stream: Any) -> VerifiedRun:
    """The verdict with a diagnosis where it is wrong."""
    if verdict.judgement is not Judgement.WRONG or verdict.diagnosis is not None:
        return VerifiedRun(run, (), verdict)
    table = Path(stream) if stream is not None else stream_path(run.folder or "")
    held: tuple[StreamElement, ...] = tuple(elements(table))
    if run.header.semantics.clock is not Clock.APPLICATION:
        run, held = by_arrival(run, held)
    return VerifiedRun(run, held, diagnosed(run, held, verdict))


def _passed(found: VerifiedRun, name: str) -> Verdict:
    __tracebackhide__ = True
    if not passes(found.verdict):
        lines = [*failure_lines(found.run.header, found.verdict)]
        raise AssertionError(visible("\n".join([f"{name}: {lines[0]}", *lines[1:]])))
    return found.verdict
