"""The pages of the form: a new experiment, one that is edited; each works without script."""

import hashlib
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, TypeVar
from urllib.parse import quote

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from streamgauge import engines, workloads
from streamgauge.formats.files import overwrite, stage
from streamgauge.semantics.profiles import PROFILES
from streamgauge.suites.experiments.variants import SweepError
from streamgauge.workbench.pages import page, read_form
from streamgauge.workbench.rooms.runs.experiment_page import Experiments
from streamgauge.workbench.rooms.runs.folder import TOML_BYTES, BenchError, inside, read_text
from streamgauge.workbench.rooms.runs.form.fields import (
    BLOCKS,
    MAX_BLOCKS,
    Fields,
    data_of,
    fields_of,
    numbers_of,
    sweepable,
    without_block,
)
from streamgauge.workbench.rooms.runs.form.problems import CheckedForm, checked
from streamgauge.workbench.rooms.runs.form.text import updated

Made = TypeVar("Made")

FORM_FIELDS: Final = 600
"""Fields of the form: those of all workloads, and boxes for each semantics of each engine."""

FIRST: Final[Fields] = {
    "name": "my-experiment",
    "workload.name": "weather",
    "workload.weather.stations": "5",
    "query.0.name": "select",
    "query.0.parameters": 'WSIZE = "10s"\nWSLIDE = "5s"\nTEMP = 50',
    "engine.0.name": "live",
    "engine.0.semantics.csparql": "on",
    "feed.pace": "fast",
}
"""The fields of a new experiment, which can be started unchanged."""

NEW_BLOCK: Final = {"query": ("query.{}.name", ""), "engine": ("engine.{}.name", "live"), "sweep": ("sweep.{}.key", "")}
"""The field that marks an added block as present."""


class ExperimentForms:
    """The handlers, one per route, over the experiments of a folder."""

    def __init__(self, root: Path, experiments: Experiments) -> None:
        self._root, self._experiments = root, experiments

    @property
    def routes(self) -> list[BaseRoute]:
        """The routes, below the room's name."""
        return [
            Route("/new", self._new, methods=["GET"]),
            Route("/new", self._make, methods=["POST"]),
            Route("/edit/{place:path}", self._edit, methods=["GET"]),
            Route("/edit/{place:path}", self._save, methods=["POST"]),
        ]

    async def _new(self, request: Request) -> Response:
        """The form of a new experiment."""
        return await self._form(request, dict(FIRST), "", "")

    async def _edit(self, request: Request) -> Response:
        """The form with the values of a file."""
        place = str(request.path_params["place"]).strip("/")
        text, fields = await run_in_threadpool(self._read, place)
        return await self._form(request, fields, place, _digest(text))

    def _read(self, place: str) -> tuple[str, Fields]:
        """The text of a file and its fields; BenchError for one that the form cannot show."""
        text = read_text(inside(self._root, place), TOML_BYTES)
        fields = _in_form(place, lambda: fields_of(_tables(text)))
        _refuse_many(fields)
        return text, fields

    def _text(self, fields: Fields, place: str) -> tuple[str, str]:
        """The text of the file before, and with these fields; BenchError."""
        before = self._read(place)[0] if place else ""
        return before, _in_form(place, lambda: updated(before, data_of(fields, _tables(before))))

    async def _make(self, request: Request) -> Response:
        """Write a new file, or show the form again with the mistakes."""
        return await self._act(request, "")

    async def _save(self, request: Request) -> Response:
        """Write the edited file, or show the form again with the mistakes."""
        return await self._act(request, str(request.path_params["place"]).strip("/"))

    async def _act(self, request: Request, place: str) -> Response:
        sent = dict(await read_form(request, TOML_BYTES, FORM_FIELDS))
        act, seen = sent.pop("do", "check"), sent.pop("seen", "")
        # Browsers send empty fields too. An empty one means the default of the experiment, so it is left out, except
        # for the field that marks a block as present: without it, a block that was just added would vanish.
        fields = _changed({name: text for name, text in sent.items() if text.strip() or _is_kept(name)}, act)
        _refuse_many(fields)
        before, text = await run_in_threadpool(self._text, fields, place)
        target = place or f"{_file_name(fields.get('name', ''))}.toml"
        # A block was added or removed: nothing is checked, since a new block is still empty.
        if act not in ("check", "save"):
            return await self._form(request, fields, place, seen, text)
        outcome = await run_in_threadpool(checked, self._experiments, text, target, fields)
        if act == "save" and outcome.right:
            await run_in_threadpool(self._write, target, text, before if place else None, seen)
            return RedirectResponse(f"/runs/experiment/{quote(target)}", 303)
        return await self._form(request, fields, place, seen, text, outcome)

    def _write(self, place: str, text: str, before: str | None, seen: str) -> None:
        """Write the file; BenchError where a new one would replace another, or another was edited meanwhile."""
        path = inside(self._root, place)
        if before is None and path.exists():
            raise BenchError(f"{place} already exists: give the experiment another name, or edit that file")
        # `seen` went to the browser with the form and came back: the server stores nothing between the two requests.
        if before is not None and _digest(before) != seen:
            raise BenchError(f"{place} has changed since the form was opened: open it again")
        with stage(path) as aside:
            aside.write_text(text, encoding="utf-8", newline="\n")
            overwrite(aside, path)

    async def _form(
        self,
        request: Request,
        fields: Mapping[str, str],
        place: str,
        seen: str,
        text: str = "",
        outcome: CheckedForm | None = None,
    ) -> Response:
        blocks = {block: numbers_of(block, fields) for block in BLOCKS}
        values: dict[str, object] = {
            "given": fields, "place": place, "address": quote(place), "seen": seen, "text": text,
            "outcome": outcome or CheckedForm(), "checked": outcome is not None, "blocks": blocks, "most": MAX_BLOCKS,
            "workloads": {name: workloads.load(name) for name in workloads.names()}, "engines": engines.names(),
            "queries_of": workloads.queries, "profiles": tuple(PROFILES), "sweepable": sweepable(fields),
        }  # fmt: skip
        status = 400 if outcome is not None and not outcome.right else 200
        title = f"Edit {place}" if place else "New experiment"
        return page(request, "runs_form.html.j2", title, status, **values)


def _in_form(place: str, work: Callable[[], Made]) -> Made:
    """The result of ``work``; BenchError if the file lacks the tables of an experiment."""
    try:
        return work()
    except BenchError:
        raise
    except SweepError as error:
        raise BenchError(f"{'.'.join(error.keys)}: {error}") from error
    # Valid TOML of any shape gets here, such as `query = 5`; checking each shape before would repeat the work.
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
        raise BenchError(f"{place} has not the tables of an experiment: edit the file itself") from error


def _refuse_many(fields: Fields) -> None:
    """Refuse more blocks of a kind than the form shows; BenchError."""
    for block in BLOCKS:
        if len(numbers_of(block, fields)) > MAX_BLOCKS:
            raise BenchError(f"the form shows {MAX_BLOCKS} of {block} at most: edit the file itself")


def _tables(text: str) -> dict[str, Any]:
    """The tables of a text; BenchError if it is not TOML, which can only be corrected in the file itself."""
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise BenchError(f"not TOML: {error}: edit the file itself") from error


def _changed(fields: Fields, act: str) -> Fields:
    """The fields with a block more or less, as a button says: ``add-query``, ``remove-query-1``."""
    verb, _, rest = act.partition("-")
    block, _, number = rest.partition("-")
    if block in BLOCKS and verb == "add" and len(present := numbers_of(block, fields)) < MAX_BLOCKS:
        name, value = NEW_BLOCK[block]
        return {**fields, name.format(max(present, default=-1) + 1): value}
    if block in BLOCKS and verb == "remove" and number.isdecimal():
        return without_block(fields, block, int(number[:3]))
    return fields


def _is_kept(name: str) -> bool:
    """Whether a field keeps its block there even when it is empty."""
    block, _, rest = name.partition(".")
    return block in NEW_BLOCK and NEW_BLOCK[block][0].format(rest.partition(".")[0]) == name


def _file_name(name: str) -> str:
    """A file's name for an experiment's."""
    text = "".join(letter if letter.isalnum() or letter in "-_." else "-" for letter in name.strip())
    return text.strip("-.")[:100] or "experiment"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
