"""Runs: the experiments and judged runs of the folder."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeVar
from urllib.parse import urlencode

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from streamgauge.incremental.budget import TooMuchError
from streamgauge.model.mistake import MistakeError
from streamgauge.report.document import swatch
from streamgauge.workbench.pages import HEADERS, page
from streamgauge.workbench.rooms import Bench, Room
from streamgauge.workbench.rooms.runs.comparison import RunComparison, compare
from streamgauge.workbench.rooms.runs.folder import FolderError, FoundFiles, find
from streamgauge.workbench.rooms.runs.run_list import SORTS, STATES, ListRequest, RunLine, RunLines, RunPage, listed
from streamgauge.workbench.rooms.runs.run_page import REPORT_POLICY, Reports, RunView, view

Found = TypeVar("Found")

OTHERS: Final = 300
"""Runs that the page of a run offers to compare it with."""

_UNREADABLE: Final = (ValueError, TypeError, LookupError, ArithmeticError, RecursionError, MemoryError, OSError)
"""Errors that files of any content may lead to, where no reader has a sentence for them."""


def open_room(bench: Bench) -> Room:
    """The room."""
    return RunsRoom(bench).room


class RunsRoom:
    """The pages about the folder's runs, and what is kept between them."""

    def __init__(self, bench: Bench) -> None:
        self._root = bench.folder.resolve()
        self._lines, self._reports = RunLines(self._root), Reports(self._root)

    @property
    def room(self) -> Room:
        """The room with its routes."""
        about = "Experiments and judged runs: filter, compare, start, watch, stop and resume."
        routes = [
            Route("/", self._list),
            Route("/run/{place:path}", self._run),
            Route("/report/{place:path}", self._report),
            Route("/compare", self._compare),
        ]
        return Room("runs", "Runs", about, 1, routes)

    async def _list(self, request: Request) -> Response:
        wanted = ListRequest.of(request.query_params)
        found, shown = await run_in_threadpool(self._listed, wanted)
        links = {name: _query(wanted, sort=_turned(wanted.sort, name)) for name in SORTS}
        pages = {number: _query(wanted, page=number) for number in range(1, shown.pages + 1)}
        return page(
            request, "runs.html.j2", "Runs",
            folder=self._root.name, found=found, shown=shown, wanted=wanted, states=STATES, links=links, pages=pages,
        )  # fmt: skip

    def _listed(self, wanted: ListRequest) -> tuple[FoundFiles, RunPage]:
        found = find(self._root)
        return found, listed(self._lines.of(found.runs), wanted)

    async def _run(self, request: Request) -> Response:
        place = _place(request)
        line, shown, others, wrong = await run_in_threadpool(self._viewed, place)
        return page(
            request, "runs_run.html.j2", line.name, 200 if shown else 422,
            line=line, view=shown, others=others, wrong=wrong,
        )  # fmt: skip

    def _viewed(self, place: str) -> tuple[RunLine, RunView | None, Sequence[RunLine], str]:
        """A run's line, its view or the sentence why there is none, and the runs that it may be compared with."""
        lines = {line.place: line for line in self._lines.of([*find(self._root).runs, place])}
        line = lines.pop(place)
        judged = [each for each in lines.values() if each.precision is not None]
        others = sorted(judged, key=lambda each: (each.above != line.above, -each.recorded))[:OTHERS]
        try:
            return line, _in_words(place, lambda: view(self._root, place)), others, ""
        except MistakeError as error:
            return line, None, (), str(error)

    async def _compare(self, request: Request) -> Response:
        places = [place.strip("/") for place in request.query_params.getlist("run")]
        if len(places) != 2:
            raise FolderError(f"Two runs are compared, and {len(places)} are marked: mark two in the list of runs")
        lines, found, wrong = await run_in_threadpool(self._compared, (places[0], places[1]))
        return page(
            request, "runs_comparison.html.j2", "Two runs compared", 200 if found else 422,
            lines=lines, found=found, wrong=wrong, swatches=[swatch(0), swatch(1)],
            turned="?" + urlencode([("run", place) for place in reversed(places)]),
        )  # fmt: skip

    def _compared(self, places: tuple[str, str]) -> tuple[Sequence[RunLine], RunComparison | None, str]:
        found = {line.place: line for line in self._lines.of([*find(self._root).runs, *places])}
        lines = (found[places[0]], found[places[1]])
        try:
            return lines, _in_words("one of them", lambda: compare(self._root, lines)), ""
        except MistakeError as error:
            return lines, None, str(error)

    async def _report(self, request: Request) -> Response:
        place = _place(request)
        text = await run_in_threadpool(_in_words, place, lambda: self._reports.page(place))
        headers = {**HEADERS, "Content-Security-Policy": REPORT_POLICY}
        return HTMLResponse(text.encode(errors="backslashreplace"), headers=headers)


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
        raise FolderError(f"{place or 'this run'} cannot be shown here: {error}") from error
    except _UNREADABLE as error:
        why = str(error) or "its files are not as Streamgauge writes them"
        raise FolderError(f"{place or 'this run'} cannot be read: {type(error).__name__}: {why:.300}") from error


def _turned(sort: str, name: str) -> str:
    """The order by a column that its heading leads to: the other way round where the list is in its order."""
    return f"-{name}" if sort == name else name


def _query(wanted: ListRequest, **changes: object) -> str:
    """The address of the list with other values, those that say nothing left out."""
    values: Mapping[str, object] = {"q": wanted.words, "verdict": wanted.verdict, "sort": wanted.sort, **changes}
    return "?" + urlencode({name: str(value) for name, value in values.items() if value not in ("", 1)})
