"""The task of a program on the pipe: one line of JSON, before elements and advances; and the words of the pipe.

``{"query": text, "dialect": name, "semantics": {...}, "static": [[s, p, o], ...], "options": {...}}`` (docs/pipe.md);
``"static_file": path`` names an N-Triples file in the place of ``static``, for engines that say that they read one.
"""

import json
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias, cast

from streamgauge.formats.lines import LineError
from streamgauge.formats.semantics import FieldError, from_json, to_json
from streamgauge.formats.static import StaticFile
from streamgauge.model.obstacles import obstacle
from streamgauge.model.semantics import Semantics
from streamgauge.model.terms import Triple

READY = b'{"ready":true}\n'
"""The line of a program that has read its task, or all preloaded input, and can go on."""

GO = b'{"go":true}\n'
"""Ends the input to be preloaded, and then starts its evaluation."""

CLOSE = b'{"close":true}\n'
"""Ends a task: no more input for it."""

CLOSED = b'{"closed":true}\n'
"""The line of a program that has sent every answer to its task and can take another."""

Said: TypeAlias = Literal["ready", "closed", "refused"]
_WORD = re.compile(rb'\s*\{\s*"(ready|closed|refused)"\s*:')


@dataclass(frozen=True, slots=True)
class ProgramWord:
    """A word that a program says beside its answers; ``sentence`` says why it refuses its task."""

    said: Said
    sentence: str = ""


class TaskRefusedError(ValueError):
    """A program on the pipe that does not take its task; the sentence is its own."""


def word(line: bytes) -> ProgramWord | None:
    """The word that a line of a program is, however its JSON is laid out; ``None`` for any other line."""
    found = _WORD.match(line)
    if found is None:
        return None
    said = cast(Said, found[1].decode())
    try:
        value = json.loads(line)[said]
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    if said == "refused":
        return ProgramWord(said, value) if isinstance(value, str) and value else None
    return ProgramWord(said) if value is True else None


def encode_refused(sentence: str) -> bytes:
    """The line by which a program does not take its task."""
    return json.dumps({"refused": sentence}).encode() + b"\n"


@dataclass(frozen=True, slots=True)
class Task:
    """A continuous query as text of a dialect, the semantics asked for, static triples and the engine's own options.

    The option ``preload`` makes the program take all input before it begins, so that only evaluation is timed.
    """

    query: str
    dialect: str
    semantics: Semantics
    static: Collection[Triple] = ()
    options: Mapping[str, object] = field(default_factory=dict)

    @property
    def preload(self) -> bool:
        """Whether input is taken in before evaluation begins."""
        return self.options.get("preload") is True


def encode_task(task: Task) -> bytes:
    """One line for a task."""
    data = {
        "query": task.query,
        "dialect": task.dialect,
        "semantics": to_json(task.semantics),
        **_static(task.static),
        "options": dict(task.options),
    }
    return json.dumps(data, separators=(",", ":")).encode() + b"\n"


def decode_task(line: bytes | str) -> Task:
    """The task of a line; LineError names the field that is wrong."""
    try:
        data = json.loads(line)
    except ValueError as error:
        raise LineError(f"not a line of JSON: {error}") from error
    if not isinstance(data, dict):
        raise LineError("a task is a JSON object")
    for name in ("query", "dialect"):
        if not isinstance(data.get(name), str):
            raise LineError(f"field {name} is missing: expected text")
    try:
        semantics = from_json(data.get("semantics") or {})
    except FieldError as error:
        raise LineError(str(error)) from error
    static: Collection[Triple] = tuple(_triple(item, number) for number, item in enumerate(data.get("static") or ()))
    if (file := data.get("static_file")) is not None:
        static = _file(file)
    return Task(data["query"], data["dialect"], semantics, static, data.get("options") or {})


def _static(static: Collection[Triple]) -> dict[str, object]:
    return {"static_file": str(static.path)} if isinstance(static, StaticFile) else {"static": tuple(static)}


def _file(path: object) -> StaticFile:
    if not isinstance(path, str):
        raise LineError("field static_file: expected the path of an N-Triples file")
    try:
        return StaticFile(Path(path))
    except OSError as error:
        raise LineError(f"field static_file: {path}: {obstacle(error)}") from error


def _triple(item: object, number: int) -> Triple:
    if not isinstance(item, list) or len(item) != 3 or not all(isinstance(term, str) for term in item):
        raise LineError(f"field static[{number}]: expected three N-Triples terms")
    return item[0], item[1], item[2]
