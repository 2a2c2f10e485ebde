"""``assert_right``: a test fails with the unexpected windows, their rows, and the diagnosis."""

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
"""A run, its folder, or a session."""


def assert_right(
    recorded: Recorded | Query,
    stream: Stream | Sequence[Stream] | None = None,
    answers: Iterable[Given] | None = None,
    **options: Any,
) -> Verdict:
    """The verdict, if every window was answered as expected and in time; else AssertionError.

    ``recorded`` is a run, its folder or a session, or, with ``stream`` and ``answers``, a query as for ``verify``.
    ``options`` are those of ``check`` for a run or a folder, else those of ``verify``. A session is closed.

    The error lists each window (borders, instant), its missing and surplus rows, and the diagnosis.
    """
    __tracebackhide__ = True
    if answers is not None:
        result = verified(_query(recorded), _streams(stream), answers, **options)
        return _passed(result, "these answers")
    if isinstance(recorded, RecordedSession):
        run, fed = recorded.recorded()
        return _passed(judged(run, fed, **options), f"{run.header.engine} as {run.header.semantics.name}")
    if not isinstance(recorded, Run | str | Path):
        raise TypeError("assert_right takes a run, a folder or a session; or a query with its stream and its answers")
    run = recorded if isinstance(recorded, Run) else load_run(recorded)
    if stream is not None:
        options["stream"] = stream
    return _passed(_explained(run, check(run, **options), stream), str(run.folder or run.header.engine))


def _query(query_given: Any) -> Query:
    if isinstance(query_given, Run | RecordedSession):
        raise TypeError("answers are given beside a query, not beside a run, which has its own")
    query: Query = query_given
    return query


def _streams(stream: Any) -> Sequence[Stream]:
    """One stream, or several in a tuple."""
    if stream is None:
        raise TypeError("answers are judged against a stream: assert_right(query, stream, answers)")
    return stream if isinstance(stream, tuple) else (stream,)


def _explained(run: Run, verdict: Verdict, stream: Any) -> VerifiedRun:
    """The verdict, with a diagnosis if it is wrong."""
    if verdict.judgement is not Judgement.WRONG or verdict.diagnosis is not None:
        return VerifiedRun(run, (), verdict)
    table = Path(stream) if stream is not None else stream_path(run.folder or "")
    stored: tuple[StreamElement, ...] = tuple(elements(table))
    if run.header.semantics.clock is not Clock.APPLICATION:
        # Under these semantics an element's time is that of its arrival, not the one in the stream.
        run, stored = by_arrival(run, stored)
    return VerifiedRun(run, stored, diagnosed(run, stored, verdict))


def _passed(verified_run: VerifiedRun, name: str) -> Verdict:
    __tracebackhide__ = True
    if not passes(verified_run.verdict):
        lines = [*failure_lines(verified_run.run.header, verified_run.verdict)]
        raise AssertionError(visible("\n".join([f"{name}: {lines[0]}", *lines[1:]])))
    return verified_run.verdict
