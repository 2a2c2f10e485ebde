"""Live: continuous queries over running sources, answered in this process by the core of the query service.

``registrations`` are the queries with their sources and rates, ``rows`` answers as cells, ``chart`` their drawing,
``feed`` their events. The pages are here; each works without script (docs/workbench-live.md).
"""

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote, urlencode

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from streamgauge.formats.batches import count_of
from streamgauge.formats.bounds import BoundError
from streamgauge.model.mistake import MistakeError
from streamgauge.model.terms import XSD
from streamgauge.query import dialect_names
from streamgauge.report.run_lanes import EVERYTHING, TimelineView
from streamgauge.semantics.profiles import PROFILES
from streamgauge.servers.http import events
from streamgauge.servers.http.deadlines import DeadlineError
from streamgauge.servers.http.replies import clipped
from streamgauge.servers.queries.catalogue import UnknownQueryError
from streamgauge.servers.queries.http import REFUSALS
from streamgauge.servers.queries.limits import QueryLimitError
from streamgauge.servers.queries.registered import RegisteredQuery
from streamgauge.servers.queries.requests import QueryRegistration, RequestError, read_items, read_registration
from streamgauge.workbench.pages import HEADERS, page, read_form
from streamgauge.workbench.rooms import Bench, Room, SearchHit, has_all
from streamgauge.workbench.rooms.live.answer_lane import answer_picture
from streamgauge.workbench.rooms.live.board import board_panels
from streamgauge.workbench.rooms.live.chart import (
    SPANS,
    ChartChoice,
    ChartError,
    LiveChart,
    chosen_chart,
    drawing,
    numeric_columns,
)
from streamgauge.workbench.rooms.live.feed import answer_feed
from streamgauge.workbench.rooms.live.registrations import LIMITS, LiveRegistrations
from streamgauge.workbench.rooms.live.rows import (
    DOWNLOADS,
    NumberedAnswer,
    columns,
    newest_rows,
    read_answers,
)
from streamgauge.workbench.terms import declared_prefixes, shown_time


def open_room(bench: Bench) -> Room:
    """The room of registered queries."""
    about = "Continuous queries over running sources (files, MQTT, Kafka, events), as table and as chart."
    live_room = LiveRoom(LiveRegistrations(bench.folder, leaving=bench.leaving))
    return Room("live", "Live", about, 3, live_room.routes, live_room.close, live_room.search)


FORM: Final = 2 * 2**20
"""Bytes of a form: a query, static data, elements."""

Handler = Callable[[Request], Awaitable[Response]]

EXAMPLE: Final = """SELECT ?sensor (AVG(?value) AS ?average) (COUNT(*) AS ?readings)
FROM NAMED WINDOW <urn:w> ON <urn:readings> [RANGE PT10S STEP PT5S]
WHERE { WINDOW <urn:w> { ?sensor <urn:says> ?value } }
GROUP BY ?sensor"""
"""A query to begin with; ``ELEMENTS`` are for it."""

ELEMENTS: Final = "".join(
    json.dumps({"t": 1000 * at, "add": f'<urn:sensor:{name}> <urn:says> "{value}"^^<{XSD}integer> .'}) + "\n"
    for at, name, value in (
        (1, "a", 20),
        (2, "b", 31),
        (4, "a", 22),
        (7, "b", 30),
        (11, "a", 25),
        (16, "b", 28),
        (21, "a", 26),
    )
)

_UNFED: Final = {"source": "", "ended": False, "paused": False, "fault": "", "refused": 0}
"""The state of a stream without a source."""

_FIELDS: Final = ("query", "dialect", "semantics", "engine", "lateness", "static", "advance", "sources")


class LiveRoom:
    """The handlers of the room, one per route."""

    def __init__(self, registrations: LiveRegistrations) -> None:
        self._registrations = registrations

    @property
    def routes(self) -> list[BaseRoute]:
        """The routes, below the room's name."""
        own: Sequence[tuple[str, str, Handler]] = (
            ("GET", "/", self.all),
            ("GET", "/board", self.board),
            ("GET", "/new", self.new),
            ("POST", "/new", self.register),
            ("GET", "/streams/", self.streams),
            ("GET", "/streams/publish", self.publish_form),
            ("POST", "/streams/publish", self.publish),
            ("POST", "/streams/{change:str}", self.change_stream),
            ("GET", "/queries/{name}", self.query),
            ("GET", "/queries/{name}/plan", self.plan),
            ("GET", "/queries/{name}/events", self.events),
            ("GET", "/queries/{name}/answers.{form:str}", self.answers),
            ("GET", "/queries/{name}/timeline", self.timeline),
            ("POST", "/queries/{name}/attach", self.attach),
            ("POST", "/queries/{name}/{change:str}", self.change),
        )
        return [Route(path, handler, methods=[method]) for method, path, handler in own]

    async def close(self) -> None:
        """End all queries and sources."""
        await run_in_threadpool(self._registrations.close)

    def search(self, words: Sequence[str]) -> list[SearchHit]:
        """The queries that run, also by their text, and the streams of the folder, that have all words."""
        queries = (
            SearchHit("Live queries", one.title, f"/live/queries/{one.query.name}", one.state)
            for one in self._registrations.activities()
            if has_all(words, one.title, one.query.name, one.query.question.text)
        )
        streams = (
            SearchHit("Streams", file, f"/live/new?{urlencode({'sources': file})}", "register a query over it")
            for file in self._registrations.places.streams()
            if has_all(words, file)
        )
        return [*queries, *streams]

    async def all(self, request: Request) -> Response:
        """The queries and streams."""
        activities = await run_in_threadpool(self._registrations.activities)
        streams = await run_in_threadpool(self._streams)
        return page(
            request,
            "live.html.j2",
            "Live",
            activities=activities,
            streams=streams,
            most=LIMITS.queries,
            shown_time=shown_time,
        )

    async def board(self, request: Request) -> Response:
        """The queries that ``q`` names, or all, side by side."""
        choice = request.query_params
        activities = await run_in_threadpool(self._registrations.activities)
        panels = await run_in_threadpool(board_panels, activities, choice, lambda one: self._visible(one.query))
        values = {"activities": activities, "panels": panels, "spans": SPANS, "span": choice.get("span", "")}
        return page(request, "live_board.html.j2", "Board", 200, **values)

    async def new(self, request: Request) -> Response:
        """The form that registers a query; ``?example=1`` fills it in, ``sources`` and ``query`` fill a field."""
        fields = {name: request.query_params[name] for name in ("sources", "query") if name in request.query_params}
        fields |= {"query": EXAMPLE} if "example" in request.query_params else {}
        return await self._form(request, fields, "", 200)

    async def register(self, request: Request) -> Response:
        """Register a query and open its sources, or the form again with the reason why not."""
        fields = await read_form(request, FORM)
        sources = [line.strip() for line in fields.get("sources", "").split("\n") if line.strip()]
        try:
            running = await run_in_threadpool(self._registrations.register, read_request(fields), sources)
        except EXPECTED as error:
            return await self._form(request, fields, sentence(error), 400)
        return _go(f"/live/queries/{running.name}")

    async def query(self, request: Request) -> Response:
        """A query: its state, the chart, the newest answers."""
        return await self._query(request, self._running(request), "", 200)

    async def plan(self, request: Request) -> Response:
        """The operators of a query, with their work while the page is open."""
        running = self._running(request)
        plan = await run_in_threadpool(self._registrations.plans.plan, running)
        activity = self._registrations.activity(running.name)
        return page(request, "live_plan.html.j2", f"Plan of {activity.title}", activity=activity, plan=plan)

    async def events(self, request: Request) -> Response:
        """The answers as server-sent events."""
        running = self._running(request)
        try:
            after = events.last_event(request.headers.get("last-event-id") or request.query_params.get("after"))
        except events.EventError as error:
            raise HTTPException(400, str(error)) from error
        signal = events.Signal()
        try:
            subscription = self._registrations.queries.subscribe(running, after, signal.set)
        except QueryLimitError:
            raise HTTPException(429, f"{LIMITS.subscribers} pages follow answers already: close one") from None
        prefixes = declared_prefixes(running.question.text)
        feed = answer_feed(self._registrations, running, subscription, signal, prefixes)
        return events.Events(feed, subscription.close)

    async def answers(self, request: Request) -> Response:
        """The answers that are kept as a file: CSV, or lines of JSON as an engine writes them."""
        running, form = self._running(request), request.path_params["form"]
        if form not in DOWNLOADS:
            raise HTTPException(404, f"answers are given as {' or '.join(DOWNLOADS)}, not as {form:.20}")
        write, kind = DOWNLOADS[form]
        disposition = f"attachment; filename*=UTF-8''{quote(running.name, safe='')}.{form}"
        body = await run_in_threadpool(write, list(running.answers.kept()))
        return Response(body, media_type=kind, headers={**HEADERS, "Content-Disposition": disposition})

    async def timeline(self, request: Request) -> Response:
        """The timeline of the answers, as SVG alone: the times of ``view``, ``width`` pixels wide."""
        running, choice = self._running(request), request.query_params
        wanted = TimelineView.of(choice.get("view", ""), choice.get("width", ""))
        picture = await run_in_threadpool(lambda: answer_picture(self._visible(running), wanted))
        return Response(picture.encode(), media_type="image/svg+xml", headers=HEADERS)

    def _visible(self, running: RegisteredQuery) -> list[NumberedAnswer]:
        """The answers that the page shows: those before it was held."""
        paused_at, answers = self._registrations.held_at(running.name), read_answers(running.answers.kept())
        return answers if paused_at is None else [answer for answer in answers if answer.number <= paused_at]

    async def change(self, request: Request) -> Response:
        """Hold, release or end a query."""
        name, known = self._running(request).name, self._registrations
        changes = {"hold": known.hold, "release": known.release, "end": known.end}
        change = request.path_params["change"]
        if change not in changes:
            raise HTTPException(404)
        await run_in_threadpool(_unless_gone, changes[change], name)
        return _go("/live/" if change == "end" else f"/live/queries/{name}")

    async def attach(self, request: Request) -> Response:
        """Open a source for a query."""
        running, fields = self._running(request), await read_form(request, FORM)
        try:
            await run_in_threadpool(self._registrations.attach, running.name, fields.get("source", ""))
        except EXPECTED as error:
            return await self._query(request, running, sentence(error), 400)
        return _go(f"/live/queries/{running.name}#streams")

    async def change_stream(self, request: Request) -> Response:
        """Pause, resume or detach the source of a stream."""
        fields, attached = await read_form(request, FORM), self._registrations.attached
        changes = {"pause": attached.pause, "resume": attached.resume, "detach": attached.detach}
        change = request.path_params["change"]
        if change not in changes:
            raise HTTPException(404)
        try:
            await run_in_threadpool(changes[change], fields.get("stream", ""))
        except EXPECTED as error:
            raise HTTPException(409, sentence(error)) from error
        return _go(_back(fields))

    async def streams(self, _request: Request) -> Response:
        """The page above forms of streams, when the address of one is opened again."""
        return _go("/live/#streams-title")

    async def publish_form(self, request: Request) -> Response:
        """The form that publishes elements on a stream."""
        stream = request.query_params.get("stream", "")
        return self._published(
            request, {"stream": stream, "elements": ELEMENTS if stream == "urn:readings" else ""}, "", 200
        )

    async def publish(self, request: Request) -> Response:
        """Publish elements, or the form again with the reason why not."""
        fields = await read_form(request, FORM)
        try:
            taken, readers = await run_in_threadpool(self._publish, fields)
        except EXPECTED as error:
            return self._published(request, fields, sentence(error), 400)
        # The page of the query shows at once what the elements did.
        if len(readers) == 1:
            return _go(f"/live/queries/{readers[0]}")
        return self._published(
            request, {**fields, "elements": ""}, "", 200, f"{taken} taken, read by {len(readers)} queries."
        )

    def _publish(self, fields: Mapping[str, str]) -> tuple[int, list[str]]:
        queries, stream = self._registrations.queries, fields.get("stream", "")
        readers = queries.readers(stream)
        if not readers:
            raise RequestError(f"no query reads <{stream:.200}>: register one first, or name a stream that one reads")
        body, form = fields.get("elements", "").encode(), fields.get("form", "jsonl")
        items = read_items(body, "", form, stream, fields.get("time") or None, queries.now)
        queries.publish(stream, items)
        return count_of(items), readers

    def _published(
        self, request: Request, fields: Mapping[str, str], error: str, status: int, notice: str = ""
    ) -> Response:
        known = [name for name in self._registrations.queries.streams() if self._registrations.queries.readers(name)]
        return page(
            request, "live_publish.html.j2", "Publish", status, given=fields, error=error, said=notice, known=known
        )

    async def _form(self, request: Request, fields: Mapping[str, str], error: str, status: int) -> Response:
        known = self._registrations
        engines = (await run_in_threadpool(lambda: known.queries)).engines
        files = await run_in_threadpool(known.places.streams)
        values = {
            "given": fields,
            "error": error,
            "engines": engines,
            "profiles": sorted(PROFILES),
            "dialects": dialect_names(),
        }
        return page(request, "live_new.html.j2", "Register a query", status, **values, files=files, limits=LIMITS)

    async def _query(self, request: Request, running: RegisteredQuery, error: str, status: int) -> Response:
        try:
            choice = ChartChoice.of(request.query_params)
        except ChartError as wrong:
            # The page is shown all the same, with the default chart: the address may be an old link.
            choice, error, status = ChartChoice(), sentence(wrong), 400
        values = await run_in_threadpool(self._values, running, choice)
        return page(request, "live_query.html.j2", f"{running.name} · Live", status, error=error, **values)

    def _values(self, running: RegisteredQuery, choice: ChartChoice) -> dict[str, object]:
        """The variables of a query's page."""
        known = self._registrations
        # Read once: chart, rows and timeline of a page must show the same answers.
        paused_at, visible = known.held_at(running.name), self._visible(running)
        drawn = chosen_chart(visible, choice)
        return {
            "activity": known.activity(running.name),
            "held": None if paused_at is None else running.answers.number - paused_at,
            "streams": [stream for stream in self._streams() if stream["stream"] in running.worker.streams],
            "columns": columns(visible),
            "rows": newest_rows(visible, declared_prefixes(running.question.text)),
            "last": visible[-1].number if visible else (running.answers.number if paused_at is None else paused_at),
            "kept": running.answers.number - running.answers.oldest + 1,
            "choices": _choices(visible),
            "choice": choice,
            "spans": SPANS,
            "chart": drawn,
            "picture": answer_picture(visible, EVERYTHING),
            "plots": _plots(drawn),
            "limits": LIMITS,
            "shown_time": shown_time,
        }

    def _streams(self) -> list[dict[str, Any]]:
        """The streams that are read, written or fed."""
        known = self._registrations
        queries, attached = known.queries, known.attached.status()
        listing = []
        for name, count in queries.streams().items():
            readers, writer, fed = queries.readers(name), queries.writer(name), attached.get(name, {})
            if readers or writer or fed:
                shown = {"source": known.places.shown(str(fed["source"]))} if fed else {}
                stream = {"stream": name, "elements": count, "read_by": readers, "written_by": writer}
                listing.append({**stream, **_UNFED, **fed, **shown})
        return listing

    def _running(self, request: Request) -> RegisteredQuery:
        try:
            return self._registrations.queries.query(request.path_params["name"])
        except UnknownQueryError as error:
            raise HTTPException(404, f"{error}: it was ended, or never registered") from error


EXPECTED: Final[tuple[type[Exception], ...]] = (*REFUSALS, MistakeError, UnknownQueryError, BoundError, DeadlineError)
"""The errors whose messages are shown."""


def sentence(error: Exception) -> str:
    """An expected error in words."""
    return clipped(str(error))


def read_request(fields: Mapping[str, str]) -> QueryRegistration:
    """The registration of a form's fields; RequestError names the one that is wrong."""
    data: dict[str, object] = {
        name: fields[name] for name in _FIELDS if name != "sources" and fields.get(name, "").strip()
    }
    if not fields.get("query", "").strip():
        raise RequestError("there is no query: write one, or begin with the example")
    if "lateness" in data:
        text = str(data["lateness"]).strip()
        # 15 digits are 30,000 years.
        if not text.isascii() or not text.isdigit() or len(text) > 15:
            raise RequestError(f"lateness is {text:.40}: expected whole milliseconds, at least 0, in at most 15 digits")
        data["lateness"] = int(text)
    return read_registration(data)


def _unless_gone(change: Callable[[str], None], name: str) -> None:
    """Change a query, unless another request has ended it."""
    try:
        change(name)
    except UnknownQueryError as error:
        raise HTTPException(404, str(error)) from error


def _choices(answers: Sequence[NumberedAnswer]) -> dict[str, list[str]]:
    """The columns that a chart can show, and those that can split its lines."""
    numeric = numeric_columns(answers)
    return {"show": numeric, "by": [name for name in columns(answers) if name not in numeric]}


def _plots(drawn: LiveChart) -> list[object]:
    return [drawing(drawn, 1100, 260, "wide"), drawing(drawn, 360, 220, "narrow")]


def _back(fields: Mapping[str, str]) -> str:
    """The page that a form of a stream was on."""
    name = fields.get("query", "")
    return f"/live/queries/{quote(name, safe='')}" if name else "/live/"


def _go(address: str) -> Response:
    return RedirectResponse(address, 303)
