"""The playground: a continuous query, a stream, two semantics; windows and reports drawn, and which differ and why.

``state`` is what a person typed; ``result`` its answer by the definition (``evaluation``, ``comparison``);
``timeline`` and ``replies`` show it, ``downloads`` writes it to files; ``examples``, ``recorded_runs`` and
``stream_text`` fill it; ``recordings`` diagnoses an engine's answers.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from streamgauge.formats.bounds import BoundError, read_json
from streamgauge.formats.fields import FieldError
from streamgauge.model.mistake import MistakeError
from streamgauge.query import dialect_names
from streamgauge.servers.http.limits import STATUS, BodyError, CrowdedError, Gate, read_body, text
from streamgauge.workbench.pages import HEADERS, page
from streamgauge.workbench.rooms import Bench, Room, SearchHit, has_all
from streamgauge.workbench.rooms.playground import examples, recordings, replies
from streamgauge.workbench.rooms.playground.downloads import DOWNLOADS
from streamgauge.workbench.rooms.playground.fields import CONTROLS, fields_of, in_words, profile_names, semantics_of
from streamgauge.workbench.rooms.playground.recorded_runs import run_state
from streamgauge.workbench.rooms.playground.result import PlaygroundResult
from streamgauge.workbench.rooms.playground.result import result as result_of
from streamgauge.workbench.rooms.playground.state import (
    MOST_BYTES,
    PlaygroundState,
    of_form,
    of_json,
    of_link,
)
from streamgauge.workbench.rooms.playground.stream_text import SYNTAXES

FORM: Final = "application/x-www-form-urlencoded"
MOST_WAITING: Final = 20


def open_room(bench: Bench) -> Room:
    """The room over a folder of runs, whose recordings may be opened."""
    about = "A query, a stream, two semantics: which reports appear, vanish or change, and why."
    playground = _Playground(bench.folder)
    routes = [
        Route("/", playground.page, methods=["GET"]),
        Route("/", playground.form, methods=["POST"]),
        Route("/examples", playground.examples, methods=["GET"]),
        Route("/evaluate", playground.evaluate, methods=["POST"]),
        Route("/diagnose", playground.diagnose, methods=["POST"]),
        Route("/generate", playground.generate, methods=["POST"]),
        Route("/profile", playground.profile, methods=["POST"]),
    ]
    return Room("playground", "Playground", about, 2, routes, search=_search)


def _search(words: Sequence[str]) -> list[SearchHit]:
    """The examples that have all words."""
    return [
        SearchHit("Examples", one.title, f"/playground/?case={one.name}", one.about)
        for one in examples.examples()
        if has_all(words, one.title, one.about, one.theme, one.source)
    ]


class _Playground:
    """The handlers; few evaluations run concurrently, the others wait."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        # Two at once, as Python runs one thread at a time anyway: more would only make all of them slower.
        self._gate = Gate(MOST_WAITING, "evaluate", room=2)

    async def _alone(self, work: Callable[..., Any], *arguments: object) -> Any:
        try:
            async with self._gate.through():
                return await run_in_threadpool(work, *arguments)
        except CrowdedError as error:
            raise HTTPException(429, str(error)) from None

    async def page(self, request: Request) -> Response:
        """The state that the address names: ``s`` a link, ``case`` an example, ``run`` (and ``window``) a run."""
        troubled = None
        try:
            state = await run_in_threadpool(self._asked, request)
        except MistakeError as error:
            # Where the folder is on the server is nothing for the reader of a link.
            sentence = str(error).replace(f"{self._folder.resolve()}/", "").replace(f"{self._folder}/", "")
            state, troubled = examples.FIRST, f"{sentence}. The first example is opened in its place."
        return await self._shown(request, state, troubled, diagnose="window" in request.query_params)

    def _asked(self, request: Request) -> PlaygroundState:
        parameters = request.query_params
        if "s" in parameters:
            return of_link(parameters["s"])
        if "case" in parameters:
            return examples.example(parameters["case"], parameters.get("profile", ""))
        if "run" in parameters:
            return run_state(self._folder, parameters["run"], parameters.get("window", ""))
        return examples.FIRST

    async def form(self, request: Request) -> Response:
        """The form without JavaScript: the page for the submitted state, or its reports as a file."""
        body = await _body(request)
        if request.headers.get("content-type", "").partition(";")[0].strip() != FORM:
            raise HTTPException(415, f"send the form as {FORM}")
        try:
            fields = parse_qs(text(body), keep_blank_values=True, max_num_fields=200)
        except (BodyError, ValueError) as error:
            raise HTTPException(400, str(error)) from None
        state = of_form(fields)
        (action, *_) = fields.get("do", ["draw"])
        if action in DOWNLOADS:
            return await self._file(request, state, action)
        return await self._shown(request, state, None, diagnose=action == "diagnose")

    async def _file(self, request: Request, state: PlaygroundState, name: str) -> Response:
        """The reports of a state as a file, or the page with its mistakes."""
        result: PlaygroundResult = await self._alone(result_of, state)
        if result.troubles:
            return await run_in_threadpool(_page, request, result, None, None)
        write, kind = DOWNLOADS[name]
        headers = {**HEADERS, "Content-Disposition": f'attachment; filename="{name}"'}
        return Response(await run_in_threadpool(write, result), media_type=kind, headers=headers)

    async def _shown(
        self, request: Request, state: PlaygroundState, troubled: str | None, *, diagnose: bool = False
    ) -> Response:
        result: PlaygroundResult = await self._alone(result_of, state)
        diagnosis = await self._alone(recordings.diagnosis, result) if diagnose and state.recording else None
        return await run_in_threadpool(_page, request, result, troubled, diagnosis)

    async def evaluate(self, request: Request) -> Response:
        """Takes a state as JSON; returns elements, windows, reports and differences, with the drawn part of the page.

        With ``?brief``, only what the page's script needs.
        """
        state = await _state(request)
        result = await self._alone(result_of, state)
        return JSONResponse(await run_in_threadpool(_evaluated, request, result), headers=HEADERS)

    async def diagnose(self, request: Request) -> Response:
        """A state with a recording in; the diagnosis as sentences, and the page's part that draws it."""
        result = await self._alone(result_of, await _state(request))
        diagnosis = await self._alone(recordings.diagnosis, result)
        html = page(request, "playground-diagnosis.html.j2", "", diagnosis=diagnosis, found=result).body
        return JSONResponse({**diagnosis.as_json(), "html": bytes(html).decode()}, headers=HEADERS)

    async def examples(self, request: Request) -> Response:
        """The list of all examples."""
        examples_ = await run_in_threadpool(examples.examples)
        themes = dict.fromkeys(example.theme for example in examples_)
        by_theme = {theme: [example for example in examples_ if example.theme == theme] for theme in themes}
        return page(request, "playground-examples.html.j2", "Examples", by_theme=by_theme, count=len(examples_))

    async def generate(self, request: Request) -> Response:
        """A drawn stream as text: ``workload``, ``seed``, ``parameters`` and the ``query`` that names the stream."""
        stream, syntax = await self._alone(examples.drawn, await _json(request))
        return JSONResponse({"stream": stream, "syntax": syntax}, headers=HEADERS)

    async def profile(self, request: Request) -> Response:
        """The fields of the profile of a ``name``."""
        data = await _json(request)
        if not isinstance(data, dict) or not isinstance(data.get("name"), str):
            raise HTTPException(400, 'a profile is asked for by {"name": its name}')
        try:
            return JSONResponse(fields_of(semantics_of({"profile": data["name"]})), headers=HEADERS)
        except FieldError as error:
            raise HTTPException(400, str(error)) from None


async def _body(request: Request) -> bytes:
    try:
        return await read_body(request, MOST_BYTES)
    except BodyError as error:
        raise HTTPException(
            next(code for kind, code in STATUS.items() if isinstance(error, kind)), str(error)
        ) from None


async def _json(request: Request) -> Any:
    try:
        return read_json(text(await _body(request)))
    except (BoundError, ValueError, RecursionError) as error:
        raise HTTPException(400, f"this is not JSON: {error}") from None


async def _state(request: Request) -> PlaygroundState:
    return of_json(await _json(request))


def _page(
    request: Request, result: PlaygroundResult, troubled: str | None, diagnosis: recordings.RecordingDiagnosis | None
) -> Response:
    values = {**replies.page_values(result), **_controls(result), "troubled": troubled, "diagnosis": diagnosis}
    values["opened"] = examples.opened(request.query_params.get("case", ""))
    values["judged"] = request.query_params.get("run", "") if diagnosis and "window" in request.query_params else ""
    return page(request, "playground.html.j2", "Playground", 200 if troubled is None else 400, **values)


def _evaluated(request: Request, result: PlaygroundResult) -> dict[str, Any]:
    brief = "brief" in request.query_params
    drawn = page(request, "playground-drawn.html.j2", "", **replies.page_values(result, scripted=brief)).body
    return {**replies.answer_json(result, brief=brief), "html": bytes(drawn).decode()}


def _controls(result: PlaygroundResult) -> dict[str, object]:
    """The variables of the form."""
    return {
        "state": result.state,
        "controls": CONTROLS,
        "profiles": profile_names(),
        "dialects": dialect_names(),
        "syntaxes": SYNTAXES,
        "workloads": examples.DRAWN,
        "chosen": {which: _chosen(result, which) for which in "ab"},
        "in_words": in_words,
    }


def _chosen(result: PlaygroundResult, which: str) -> dict[str, Any]:
    """The fields of a semantics for the form; invalid ones are shown unchanged."""
    settings = dict(result.state.a if which == "a" else result.state.b or result.state.a)
    profile = str(settings.get("profile") or result.dialect or profile_names()[0])
    profile = profile if profile in profile_names() else profile_names()[0]
    try:
        fields = fields_of(semantics_of({**settings, "profile": profile}))
    except FieldError:
        # A combination of fields that means nothing is shown as it was typed, beside the sentence about it.
        usual = fields_of(semantics_of({"profile": profile}))
        fields = {name: settings.get(name, value) for name, value in usual.items()}
    return {"profile": profile, **fields}
