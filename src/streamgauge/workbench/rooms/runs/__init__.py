"""Runs: the experiments and judged runs of the folder."""

import asyncio
import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias, TypeVar
from urllib.parse import parse_qs, quote, urlencode

import pyarrow as pa
from markupsafe import Markup
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from streamgauge.formats.run import stream_path
from streamgauge.incremental.budget import TooMuchError
from streamgauge.model.mistake import MistakeError, obstacle
from streamgauge.model.run import RunHeader
from streamgauge.model.verdict import Verdict
from streamgauge.report.run_lanes import TimelineView
from streamgauge.report.swatches import swatch
from streamgauge.servers.http.events import BEAT, BEAT_S, Events, event
from streamgauge.servers.http.limits import STATUS, BodyError, read_body
from streamgauge.suites.experiments.beginning import write_start
from streamgauge.workbench.pages import HEADERS, fragment, page
from streamgauge.workbench.rooms import Bench, Room, SearchHit, has_all
from streamgauge.workbench.rooms.runs.comparison import RunComparison, compare
from streamgauge.workbench.rooms.runs.experiment_page import ExperimentLine, Experiments, ExperimentView
from streamgauge.workbench.rooms.runs.folder import BenchError, FoundFiles, find, inside, refuse_outside, stamp
from streamgauge.workbench.rooms.runs.form.pages import ExperimentForms
from streamgauge.workbench.rooms.runs.jobs import BenchJob, Jobs
from streamgauge.workbench.rooms.runs.matrix import FACTORS, MatrixRequest, matrix
from streamgauge.workbench.rooms.runs.report_page import (
    KINDS,
    REPORT_POLICY,
    SAVED_POLICY,
    Reports,
    WantedReport,
)
from streamgauge.workbench.rooms.runs.run_list import (
    MEASURES,
    SORTS,
    STATES,
    ListRequest,
    RunLine,
    RunLines,
    RunPage,
    listed,
    matching,
)
from streamgauge.workbench.rooms.runs.run_page import RunView, view
from streamgauge.workbench.rooms.runs.timelines import has_stream, lanes_of, picture, picture_of, reasons

Found = TypeVar("Found")
ExperimentState: TypeAlias = tuple[ExperimentLine, int, BenchJob | None]
"""An experiment, how many of its runs are judged, and the job that runs it, or did."""

OTHERS: Final = 300
"""Runs that the page of a run offers to compare it with."""

EXAMPLES: Final = 100
"""Example experiments that may be written into the folder."""

FORM_BYTES: Final = 4096
"""The size of a form that is sent."""

EVERY_S: Final = 1.0
"""Seconds between polls of a watched job."""

_UNREADABLE: Final = (RecursionError, MemoryError, OSError, pa.ArrowException)
"""Errors of damaged files and of the disk where no reader has a sentence; any other error is the program's own."""


def open_room(bench: Bench) -> Room:
    """The room of recorded runs."""
    return RunsRoom(bench).room


class RunsRoom:
    """The pages about the folder's runs, and the state that they share."""

    def __init__(self, bench: Bench) -> None:
        self._root = bench.folder.resolve()
        self._lines, self._reports = RunLines(self._root), Reports(self._root)
        self._experiments = Experiments(self._root, self._lines)
        self._jobs, self._leaving = Jobs(), bench.leaving

    @property
    def room(self) -> Room:
        """The room with its routes."""
        about = "Experiments and judged runs: filter, compare, start, watch, stop and resume."
        routes = [
            Route("/", self._list),
            Route("/run/{place:path}", self._run),
            Route("/report/{place:path}", self._report),
            Route("/reports", self._report_of_marked),
            Route("/compare", self._compare),
            Route("/matrix", self._matrix),
            Route("/timeline", self._timeline),
            Route("/", self._begin, methods=["POST"]),
            Route("/experiment/{place:path}", self._experiment),
            Route("/experiment-report/{place:path}", self._report_of_experiment),
            Route("/run/{place:path}", self._act_on_run, methods=["POST"]),
            Route("/experiment/{place:path}", self._act_on_experiment, methods=["POST"]),
            Route("/watch/{kind}/{place:path}", self._watch),
            *ExperimentForms(self._root, self._experiments).routes,
        ]
        return Room("runs", "Runs", about, 1, routes, self._close, self._search)

    async def _close(self) -> None:
        """Stop what runs, and say so."""
        for sentence in await run_in_threadpool(self._jobs.close):
            print(f"streamgauge: {sentence}", file=sys.stderr, flush=True)

    async def _list(self, request: Request, notice: str = "", marked: Sequence[str] = ()) -> Response:
        """The list; ``told`` is a sentence above it, ``marked`` are the places of runs that are marked."""
        wanted = ListRequest.of(request.query_params)
        listing, shown, experiments = await run_in_threadpool(self._listed, wanted)
        links = {name: _query(wanted, sort=_turned(wanted.sort, name)) for name in SORTS}
        pages = {number: _query(wanted, page=number) for number in range(1, shown.pages + 1)}
        return page(
            request, "runs.html.j2", "Runs", 400 if notice else 200, measures=MEASURES, told=notice, marked=marked,
            folder=self._root.name, found=listing, shown=shown, wanted=wanted, states=STATES, links=links, pages=pages,
            experiments=experiments,
        )  # fmt: skip

    async def _matrix(self, request: Request) -> Response:
        """The runs that the list would show, in a cell for each of two things that were asked."""
        wanted, factors = ListRequest.of(request.query_params), MatrixRequest.of(request.query_params)
        lines = await run_in_threadpool(lambda: self._lines.of(find(self._root).runs))
        fitting = [line for line in matching(lines, wanted) if wanted.verdict in ("", line.state)]
        return page(
            request, "runs_matrix.html.j2", "Matrix of runs", wanted=wanted, asked=factors, factors=FACTORS,
            states=STATES, count=len(fitting), matrix=matrix(fitting, factors),
        )  # fmt: skip

    def _search(self, words: Sequence[str]) -> list[SearchHit]:
        """The experiments and runs that have all words, an experiment also in its text."""
        folder = find(self._root)
        experiments = (
            SearchHit("Experiments", line.name or line.place, f"/runs/experiment/{quote(line.place)}", line.about)
            for line in self._experiments.of(folder.experiments)
            if has_all(words, line.place, line.name, line.about, self._experiments.text(line.place))
        )
        runs = (
            SearchHit("Runs", line.place or line.name, f"/runs/run/{line.address}", f"{line.state}, {line.workload}")
            for line in matching(self._lines.of(folder.runs), ListRequest(" ".join(words)))
        )
        return [*experiments, *runs]

    def _listed(self, wanted: ListRequest) -> tuple[FoundFiles, RunPage, list[ExperimentState]]:
        """The matching runs of the folder, and each experiment with its number of judged runs and its job."""
        listing = find(self._root)
        lines = self._lines.of(listing.runs)
        done = Counter(line.above for line in lines if line.judged)
        experiments = self._experiments.of(listing.experiments)
        entries = [
            (experiment, done[experiment.runs], self._jobs.get(f"experiment/{experiment.place}"))
            for experiment in experiments
        ]
        return listing, listed(lines, wanted), entries

    async def _run(self, request: Request) -> Response:
        place = _place(request)
        line, shown, others, related, wrong = await run_in_threadpool(self._viewed, place)
        return page(
            request, "runs_run.html.j2", line.name, 200 if shown else 422,
            line=line, view=shown, others=others, wrong=wrong, related=related,
            see_why=reasons(self._root, place), has_stream=has_stream(self._root, place),
            **await self._job(f"run/{place}"),
        )  # fmt: skip

    def _viewed(self, place: str) -> tuple[RunLine, RunView | None, Sequence[RunLine], Sequence[tuple[str, str]], str]:
        """A run's line, its view or why there is none, the runs to compare it with, and pages that it belongs to."""
        folder = find(self._root)
        # With the place itself: a run beyond the first 2,000 is not in the list, but has a page.
        lines = {line.place: line for line in self._lines.of([*folder.runs, place])}
        line = lines.pop(place)
        judged = [line for line in lines.values() if line.precision is not None]
        # False sorts before True: runs of the same folder come first, the newest of them on top.
        others = sorted(judged, key=lambda line_: (line_.above != line.above, -line_.recorded))[:OTHERS]

        def draw(header: RunHeader, verdict: Verdict) -> Markup:
            return picture([lanes_of("", self._root, place, header, verdict)])

        def again(header: RunHeader) -> str:
            return self._experiments.command(header, folder.experiments)

        try:
            shown = _in_words(place, lambda: view(self._root, place, again, draw))
        except MistakeError as error:
            return line, None, (), (), str(error)
        experiments = [one for one in self._experiments.of(folder.experiments) if one.name == line.experiment]
        return line, shown, others, list(_related(line, list(lines.values()), experiments)), ""

    async def _compare(self, request: Request) -> Response:
        places = [place.strip("/") for place in request.query_params.getlist("run")]
        if len(places) > 2:
            return RedirectResponse("/runs/reports?" + urlencode([("run", place) for place in places]), 303)
        if len(places) < 2:
            return await self._list(request, "Mark two runs to compare them, or more for a report on all.", places)
        lines, comparison, wrong = await run_in_threadpool(self._compared, (places[0], places[1]))
        return page(
            request, "runs_comparison.html.j2", "Two runs compared", 200 if comparison else 422,
            lines=lines, found=comparison, wrong=wrong, swatches=[swatch(0), swatch(1)],
            turned="?" + urlencode([("run", place) for place in reversed(places)]),
        )  # fmt: skip

    async def _timeline(self, request: Request) -> Response:
        """The part of a timeline that the address asks for, as SVG alone."""
        places = [place.strip("/") for place in request.query_params.getlist("run")]
        wanted = TimelineView.of(request.query_params.get("view", ""), request.query_params.get("width", ""))
        drawn = await run_in_threadpool(_in_words, "one of them", lambda: picture_of(self._root, places, wanted))
        return Response(drawn.encode(errors="backslashreplace"), media_type="image/svg+xml", headers=HEADERS)

    def _compared(self, places: tuple[str, str]) -> tuple[Sequence[RunLine], RunComparison | None, str]:
        by_place = {line.place: line for line in self._lines.of([*find(self._root).runs, *places])}
        lines = (by_place[places[0]], by_place[places[1]])
        try:
            return lines, _in_words("one of them", lambda: compare(self._root, lines)), ""
        except MistakeError as error:
            return lines, None, str(error)

    async def _report(self, request: Request) -> Response:
        return await run_in_threadpool(_in_words, _place(request), lambda: self._given(request, self._of_run(request)))

    async def _report_of_marked(self, request: Request) -> Response:
        """The report on several runs that are marked."""
        places = tuple(place.strip("/") for place in request.query_params.getlist("run"))
        if not places:
            return await self._list(request, "Mark the runs that the report is to be about.")
        address = "/runs/reports?" + urlencode([("run", place) for place in places])
        wanted = WantedReport(places, f"{len(places)} runs", address, "/runs/")
        return await run_in_threadpool(_in_words, "one of them", lambda: self._given(request, wanted))

    async def _begin(self, _request: Request) -> Response:
        """Write an experiment to start from into a new folder, and open it."""
        experiment = await run_in_threadpool(self._written)
        return RedirectResponse(f"/runs/experiment/{quote(experiment)}", 303)

    def _written(self) -> str:
        """The place of an experiment that was written into a new folder."""
        names = (f"example{number or ''}" for number in range(EXAMPLES))
        folder = next((candidate for candidate in map(self._root.joinpath, names) if not candidate.exists()), None)
        if folder is None:
            raise BenchError(f"the folder has {EXAMPLES} examples already: remove some")
        return str(write_start(folder).relative_to(self._root))

    async def _report_of_experiment(self, request: Request) -> Response:
        place = _place(request)
        return await run_in_threadpool(_in_words, place, lambda: self._given(request, self._of_experiment(place)))

    def _given(self, request: Request, wanted: WantedReport) -> Response:
        """The report's page, or the part of the page that the address asks for."""
        match dict(request.query_params):
            case {"drawing": number}:
                return PlainTextResponse(self._reports.drawing(wanted, number), headers=HEADERS)
            case {"file": name}:
                media_type = KINDS.get(name.rpartition(".")[2])
                return Response(self._reports.file(wanted, name), media_type=media_type, headers=_download(name))
            case {"saved": _}:
                headers = {**_download("report.html"), "Content-Security-Policy": SAVED_POLICY}
                return _page_of_report(self._reports.saved(wanted), headers)
        return _page_of_report(self._reports.page(wanted), {**HEADERS, "Content-Security-Policy": REPORT_POLICY})

    def _of_run(self, request: Request) -> WantedReport:
        place = _place(request)
        address = quote(place)
        return WantedReport((place,), place or self._root.name, f"/runs/report/{address}", f"/runs/run/{address}")

    def _of_experiment(self, place: str) -> WantedReport:
        """The report on all runs of an experiment that are judged."""
        shown = self._experiments.view(place)
        places = tuple(line.place for _, line in shown.trials if line is not None and line.judged)
        if not places:
            raise BenchError(f"{place}: none of its runs is judged yet")
        back = f"/runs/experiment/{quote(place)}"
        return WantedReport(places, shown.line.name, f"/runs/experiment-report/{quote(place)}", back)

    async def _experiment(self, request: Request) -> Response:
        place = _place(request)
        shown, wrong = await run_in_threadpool(self._planned, place)
        return page(
            request, "runs_experiment.html.j2", shown.line.name if shown else place, 200 if shown else 422,
            place=place, address=quote(place), view=shown, wrong=wrong, measures=MEASURES,
            **await self._job(f"experiment/{place}"),
        )  # fmt: skip

    def _planned(self, place: str) -> tuple[ExperimentView | None, str]:
        try:
            return _in_words(place, lambda: self._experiments.view(place)), ""
        except MistakeError as error:
            return None, str(error).replace(f"{self._root}/", "")

    async def _job(self, key: str) -> dict[str, object]:
        """The state of the job of a key for its page: its view, and the address of its events."""
        job = self._jobs.get(key)
        view = None if job is None else await run_in_threadpool(job.look)
        return {"job": view, "events": f"/runs/watch/{quote(key)}"}

    async def _act_on_experiment(self, request: Request) -> Response:
        place = _place(request)
        await self._act(request, f"experiment/{place}", lambda: self._start(place))
        # See Other: reloading the page does not send the form again.
        return RedirectResponse(f"/runs/experiment/{quote(place)}", 303)

    def _start(self, place: str) -> BenchJob:
        """The job that runs an experiment."""
        file = _in_words(place, lambda: self._experiments.file(place))
        # With ``./``, a file whose name begins with a hyphen is not an option.
        words = ["run", f"./{place}", "--out", f"./{self._experiments.out(file.name)}"]
        return BenchJob(f"experiment {file.name}", self._root, words, watched=True)

    async def _act_on_run(self, request: Request) -> Response:
        place = _place(request)
        await self._act(request, f"run/{place}", lambda: self._judge(place))
        return RedirectResponse(f"/runs/run/{quote(place)}", 303)

    def _judge(self, place: str) -> BenchJob:
        """The job that judges a run, whose verdict is kept beside it."""
        folder = inside(self._root, place)
        stamp(folder)
        stream = _in_words(place, lambda: stream_path(folder))
        # The stream's path is a text in the run's files, which anybody may have written.
        refuse_outside(self._root, stream)
        return BenchJob(f"judging {place or self._root.name}", self._root, ["check", f"./{place}"], watched=False)

    async def _act(self, request: Request, key: str, make: Callable[[], BenchJob]) -> None:
        """Do what the form of a page asks for: start or stop the job of the page."""
        try:
            form = parse_qs((await read_body(request, FORM_BYTES)).decode(errors="replace"))
        except BodyError as error:
            raise HTTPException(STATUS[type(error)], str(error)) from error
        match form.get("do"):
            case ["start"]:
                await run_in_threadpool(self._jobs.start, key, make)
            case ["stop"]:
                if (job := self._jobs.get(key)) is not None:
                    job.stop()
            case _:
                raise BenchError("the form says neither start nor stop")

    async def _watch(self, request: Request) -> Response:
        """The events of a job: its part of the page whenever that changes, and one when the job is over."""
        job = self._jobs.get(f"{request.path_params['kind']}/{_place(request)}")
        if job is None:
            raise HTTPException(404, "nothing runs here")
        return Events(self._told(job))

    async def _told(self, job: BenchJob) -> AsyncIterator[bytes]:
        # Polled, as the job writes files in a process of its own; only a part of the page that changed is sent.
        last, silent = "", 0.0
        while not self._leaving.is_set():
            view = await run_in_threadpool(job.look)
            # The page then loads itself anew, with the outcome.
            if not view.going:
                yield event(b"over", kind="over")
                return
            if (now := fragment("runs_job.html.j2", job=view)) != last:
                last, silent = now, 0.0
                yield event(now.encode(errors="backslashreplace"), kind="progress")
            elif (silent := silent + EVERY_S) >= BEAT_S:
                silent = 0.0
                yield BEAT
            await asyncio.sleep(EVERY_S)


def _related(
    line: RunLine, others: Sequence[RunLine], experiments: Sequence[ExperimentLine]
) -> Iterator[tuple[str, str]]:
    """Pages of a run in words with their addresses: its experiment, runs of the same query and of the same stream."""
    for experiment in experiments[:3]:
        yield f"Experiment {experiment.place}", f"/runs/experiment/{quote(experiment.place)}"
    for name, digest in line.asked.items():
        if count := sum(other.asked.get(name) == digest for other in others):
            noun = "run" if count == 1 else "runs"
            yield f"{count:,} more {noun} of this {name}", f"/runs/?{urlencode({name: digest})}"
            yield f"All runs of this {name} as a matrix", f"/runs/matrix?{urlencode({name: digest})}"


def _page_of_report(text: str, headers: Mapping[str, str]) -> Response:
    """The response with a report's page."""
    # A lone surrogate, which a file's name or an escape in JSON can be, has no UTF-8.
    return HTMLResponse(text.encode(errors="backslashreplace"), headers=headers)


def _download(name: str) -> dict[str, str]:
    """Headers of a file that a browser keeps."""
    # The extended form of RFC 8187, since names may have any letters.
    return {**HEADERS, "Content-Disposition": f"attachment; filename*=UTF-8''{quote(name, safe='')}"}


def _place(request: Request) -> str:
    """The place in the address, relative to the folder."""
    return str(request.path_params["place"]).strip("/")


def _in_words(place: str, call: Callable[[], Found]) -> Found:
    """The result of reading a run; MistakeError for whatever its files lead to."""
    try:
        return call()
    except MistakeError:
        raise
    except TooMuchError as error:
        raise BenchError(f"{place or 'this run'} cannot be shown here: {error}") from error
    except _UNREADABLE as error:
        raise BenchError(f"{place or 'this run'} cannot be read: {obstacle(error):.300}") from error


def _turned(sort: str, name: str) -> str:
    """The order by a column that its heading leads to: the other way round where the list is in its order."""
    return f"-{name}" if sort == name else name


def _query(wanted: ListRequest, **changes: object) -> str:
    """The address of the list with changed values; defaults are omitted."""
    values: Mapping[str, object] = {"q": wanted.words, "verdict": wanted.verdict, "sort": wanted.sort,
        "query": wanted.query, "stream": wanted.stream, **changes,
    }  # fmt: skip
    return "?" + urlencode({name: str(value) for name, value in values.items() if value not in ("", 1)})
