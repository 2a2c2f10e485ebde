"""Recorded runs that open in the playground: whole, or the part of one around a judged report.

The part has the report before the chosen one and the one after it, with the elements behind them: its semantics has a
fixed t0 on the run's own grid, and sends nothing earlier.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from math import lcm
from pathlib import Path
from typing import Final

from streamgauge.formats.lines import encode_answers
from streamgauge.formats.run import read_run, read_verdict, stream_path
from streamgauge.formats.stream import elements
from streamgauge.incremental.budget import TooMuchError
from streamgauge.model.answer import Answer
from streamgauge.model.element import StreamElement
from streamgauge.model.mistake import MistakeError
from streamgauge.model.run import Run
from streamgauge.model.semantics import Origin, Semantics
from streamgauge.model.verdict import Verdict, WindowVerdict
from streamgauge.query import parse
from streamgauge.query.prologue import declared_prefixes
from streamgauge.semantics.arrivals import origins
from streamgauge.servers.http.deadlines import DEADLINES
from streamgauge.workbench.places import is_path
from streamgauge.workbench.rooms.playground.fields import BASE, fields_of, profile_names
from streamgauge.workbench.rooms.playground.result import GROWTH
from streamgauge.workbench.rooms.playground.state import PlaygroundState, shortened
from streamgauge.workbench.rooms.playground.stream_text import MOST_ELEMENTS, Names, write_static, write_text

SECONDS: Final = 10.0
"""CPU seconds that reading a run may take."""


class RunStateError(MistakeError, ValueError):
    """A run that cannot be opened; the sentence names it."""


def run_state(folder: Path, name: str, window: str = "") -> PlaygroundState:
    """The state of a run in the bench's folder: its query, stream, semantics and recorded answers.

    With the number of a judged report as ``window`` it is the part of the run around that report. RunStateError or
    RunError say why it cannot be opened; a path that leads out of the folder is refused.
    """
    home = folder.resolve()
    # Resolved before the check, as a link in the folder may lead out of it.
    root = (home / name).resolve() if is_path(name) else home
    if not root.is_relative_to(home) or not (root / "run.json").is_file():
        raise RunStateError(f"there is no run {name[:120]!r} in the folder of this workbench")
    table = stream_path(root).resolve()
    if not table.is_relative_to(home):
        raise RunStateError(f"the stream of {name[:120]!r} is outside the folder of this workbench")
    try:
        with DEADLINES.within(SECONDS, GROWTH):
            run = read_run(root, parse)
            return _part(run, table, read_verdict(root), window) if window else _whole(run, table, name)
    except TooMuchError as error:
        raise RunStateError(f"the run {name[:120]!r} cannot be opened here: {error}") from error


def _whole(run: Run, table: Path, name: str) -> PlaygroundState:
    stream = list(islice(elements(table), MOST_ELEMENTS + 1))
    if len(stream) > MOST_ELEMENTS:
        raise RunStateError(
            f"the run {name[:120]!r} has more than {MOST_ELEMENTS:,} elements: open one of its windows from the "
            "run's page, or record a shorter run"
        )
    return _state(run, stream, run.header.semantics, run.answers, run.header.advanced_to)


def _part(run: Run, table: Path, verdict: Verdict, window: str) -> PlaygroundState:
    """The part of a run around a judged report; RunStateError where it cannot be cut out."""
    before, after = _neighbours(verdict, window)
    assert before.instant is not None
    assert after.instant is not None
    if before.start is None or any(window.window.kind != "time" for window in run.header.query.windows):
        raise RunStateError(f"window {window} cannot be cut out of its run: its query has windows not measured in time")
    # One window ahead of the report before: for (5000, 10000] it is 0.
    earliest = 2 * before.start - (before.instant if before.end is None else before.end)
    semantics = _fixed(run, table, verdict, earliest, before.instant)
    stream = list(islice(_between(table, semantics.t0, after.instant), MOST_ELEMENTS + 1))
    if len(stream) > MOST_ELEMENTS:
        raise RunStateError(f"there are more than {MOST_ELEMENTS:,} elements around window {window}")
    return _state(run, stream, semantics, _answers(run, verdict, before.instant, after.instant), after.instant)


def _neighbours(verdict: Verdict, window: str) -> tuple[WindowVerdict, WindowVerdict]:
    """The judged reports before and after one, by their instants; itself where it is the first or the last."""
    chosen = next((candidate for candidate in verdict.windows if str(candidate.index) == window), None)
    if chosen is None or chosen.instant is None:
        raise RunStateError(f"the run has no judged report {window[:20]!r} with an instant")
    at = chosen.instant
    timed = [window for window in verdict.windows if window.instant is not None]
    before = max(
        (candidate for candidate in timed if _instant(candidate) < at and candidate.due), key=_instant, default=chosen
    )
    after = min((candidate for candidate in timed if _instant(candidate) > at), key=_instant, default=chosen)
    return before, after


def _instant(window: WindowVerdict) -> int:
    return window.instant or 0


def _fixed(run: Run, table: Path, verdict: Verdict, earliest: int, since: int) -> Semantics:
    """The run's semantics that begins at the last point of its grid up to ``earliest``, and reports from ``since``."""
    semantics, windows = run.header.semantics, run.header.query.windows
    t0 = verdict.t0
    if t0 is None:
        first = next((element.time for element in elements(table)), None)
        t0 = origins(semantics, windows, first)[0]
    # A multiple of all slides, periods and ticks, so that windows still begin where those of the run did.
    step = lcm(semantics.time_unit, semantics.period or 1, *(window.window.slide for window in windows))
    return replace(semantics, origin=Origin.FIXED, t0=t0 + max(0, earliest - t0) // step * step, since=since)


def _between(table: Path, first: int, last: int) -> Iterator[StreamElement]:
    return (element for element in elements(table) if first <= element.time <= last)


def _answers(run: Run, verdict: Verdict, first: int, last: int) -> list[Answer]:
    """The answers that judged reports of these instants were matched with, in the order of the recording."""
    places = {
        window.report
        for window in verdict.windows
        if window.report is not None and window.instant is not None and first <= window.instant <= last
    }
    return [run.answers[place] for place in sorted(places)]


def _state(
    run: Run, elements: Sequence[StreamElement], semantics: Semantics, answers: Sequence[Answer], advance: int
) -> PlaygroundState:
    header = run.header
    names = Names(declared_prefixes(header.query_text), header.query.streams)
    stream, syntax = write_text(elements, names)
    profile = semantics.name if semantics.name in profile_names() else BASE
    return PlaygroundState(
        header.query_text,
        stream,
        syntax,
        write_static(header.query.static, names),
        header.dialect,
        advance,
        shortened({"profile": profile, **fields_of(semantics)}),
        recording=encode_answers(answers).decode(),
    )
