"""Timelines of queries and runs for notebooks and papers: ``streamgauge.timeline`` (docs/python.md)."""

from base64 import b64encode
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from html import escape
from itertools import islice
from pathlib import Path
from typing import Final, Unpack

from streamgauge.api import check, load_run
from streamgauge.formats.run import stream_path
from streamgauge.formats.stream import elements
from streamgauge.model.controls import visible
from streamgauge.model.element import StreamElement
from streamgauge.model.mistake import MistakeError
from streamgauge.model.query import ContinuousQuery
from streamgauge.model.run import Run
from streamgauge.model.semantics import Clock, Semantics
from streamgauge.model.verdict import Verdict
from streamgauge.report.timeline import JudgedReports, TimelinePanel, drawn
from streamgauge.semantics.arrivals import Head, admit, arrivals, origins
from streamgauge.semantics.due import candidates_in_order
from streamgauge.verification import Given, VerifyOptions, verified
from streamgauge.watching.inputs import Query, Stream

REPORTS: Final = 30
"""Reports that are drawn, the first ones, unless another number is asked for."""

ELEMENTS: Final = 2_000
"""Elements that are drawn at most."""


class TimelineError(MistakeError, ValueError):
    """A run that cannot be drawn; the sentence says why."""


class TimelinePicture:
    """A picture of windows and reports: ``svg`` is its text, ``save`` writes it; a notebook shows it."""

    def __init__(self, svg: str, title: str) -> None:
        self.svg, self.title = svg, title

    def save(self, path: str | Path) -> None:
        """Write the SVG to a file; OSError when that fails."""
        Path(path).write_text(self.svg, encoding="utf-8")

    def _repr_html_(self) -> str:
        """The picture for notebooks, which follows the reader's light or dark theme."""
        data = b64encode(self.svg.encode()).decode()
        title = visible(escape(self.title))
        return f'<img alt="{title}" src="data:image/svg+xml;base64,{data}" style="max-width:100%">'


@dataclass(frozen=True)
class _Scene:
    """The parts of a run that are drawn."""

    name: str
    query: ContinuousQuery
    semantics: Semantics
    stream: tuple[StreamElement, ...]
    advance: int


def timeline(
    query: Query | Run,
    *streams: Stream,
    answers: Iterable[Given] | None = None,
    reports: int = REPORTS,
    **options: Unpack[VerifyOptions],
) -> TimelinePicture:
    """The stream of a query with the windows, their contents and the reports that are due, as a picture.

    ``given`` is a query with its streams (those of ``expect``, with its options but ``windows``), or a run that
    ``load_run`` read, or its folder. Of a run, and of a query with ``answers`` (those of ``verify``), what was answered
    otherwise than expected is marked. The first ``reports`` are drawn; MistakeError says what cannot be drawn.
    """
    # A text with a brace is a query, one without is the path of a folder.
    if isinstance(query, Run) or (not streams and isinstance(query, str | Path) and "{" not in str(query)):
        run = query if isinstance(query, Run) else load_run(query)
        elements = _held(run)
        return _drawn(run, elements, check(run), reports)
    if not streams:
        raise TimelineError("a query is drawn on its stream: timeline(query, stream)")
    options["explain"] = False
    verification = verified(query, streams, answers or (), **options)
    return _drawn(verification.run, verification.stream, None if answers is None else verification.verdict, reports)


def _held(run: Run) -> tuple[StreamElement, ...]:
    if run.folder is None:
        raise TimelineError("this run was not read from a folder: draw its query, timeline(query, stream, answers=...)")
    if run.header.semantics.clock is not Clock.APPLICATION:
        raise TimelineError(f"{run.header.semantics.name} counts when elements arrive: its windows have no fixed place")
    # One more than may be drawn, by which `_first` sees that there are too many.
    return tuple(islice(elements(stream_path(run.folder)), ELEMENTS + 1))


def _drawn(run: Run, elements: Sequence[StreamElement], verdict: Verdict | None, reports: int) -> TimelinePicture:
    header = run.header
    streams = header.query.streams
    own = tuple(element for element in elements if element.stream in streams)
    if not own:
        raise TimelineError(f"there is no element of {' and '.join(streams)} to draw")
    semantics = header.semantics
    t0 = None if verdict is None else verdict.t0
    origin = origins(semantics, header.query.windows, own[0].time)[0] if t0 is None else t0
    scene = _Scene(_title(header.engine, semantics, verdict), header.query, semantics, own, header.advanced_to)
    scene = _first(scene, origin, reports)
    judged = None if verdict is None else JudgedReports.of(verdict.windows)
    panel = TimelinePanel(scene, 8, origin, judged)
    return TimelinePicture(drawn(scene.name, [panel], panel.bottom + 18), scene.name)


def _title(engine: str, semantics: Semantics, verdict: Verdict | None) -> str:
    if verdict is None:
        return f"what is due under {semantics.name}"
    whose = "" if engine == "answers" else f" of {engine}"
    return f"answers{whose} under {semantics.name}: {verdict.judgement.value}"


def _first(scene: _Scene, t0: int, reports: int) -> _Scene:
    """The scene up to its last report that is drawn, named so where there are more; TimelineError where none is."""
    admitted, _ = admit(scene.stream, scene.semantics, scene.query.windows, t0)
    ranked = arrivals([Head.of(element) for element in admitted], scene.query.windows, scene.semantics.tick)
    inorder = candidates_in_order(ranked, scene.query.windows, scene.semantics, t0, scene.advance)
    # One more than is drawn, by which the title says that there are others.
    due = list(islice(inorder, reports + 1))
    if not due:
        raise TimelineError(f"no report may be due up to {scene.advance:,} ms: let time come further (advance_to)")
    more = len(due) > reports
    advance = due[reports - 1].instant if more else scene.advance
    shown = tuple(element for element in scene.stream if element.time <= advance) or scene.stream[:1]
    if len(shown) > ELEMENTS:
        raise TimelineError(
            f"more than {ELEMENTS:,} elements are in the first {reports} reports: draw fewer (reports=5)"
        )
    note = f", the first {reports} reports" if more else ""
    return replace(scene, name=scene.name + note, stream=shown, advance=advance)
