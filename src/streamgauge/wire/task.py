"""What a program on the pipe is asked: one line of JSON, before elements and advances; and the words of the pipe.

``{"query": text, "dialect": name, "semantics": {...}, "static": [[s, p, o], ...], "options": {...}}`` (docs/pipe.md).
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from streamgauge.model.semantics import Semantics
from streamgauge.model.terms import Triple
from streamgauge.wire.lines import LineError
from streamgauge.wire.semantics import FieldError, from_json, to_json

READY = b'{"ready":true}\n'
"""What a program writes once it has read its task, or all preloaded input, and can go on."""

GO = b'{"go":true}\n'
"""Ends the input to be preloaded, and then starts its evaluation."""

CLOSE = b'{"close":true}\n'
"""Ends a task: no more input for it."""

CLOSED = b'{"closed":true}\n'
"""What a program writes when every answer to the task is out and it can take another."""


@dataclass(frozen=True, slots=True)
class Task:
    """A continuous query as text of a dialect, the semantics asked for, static triples and the engine's own options.

    The option ``preload`` makes the program take all input before it begins, so that only evaluation is timed.
    """

    query: str
    dialect: str
    semantics: Semantics
    static: tuple[Triple, ...] = ()
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
        "static": task.static,
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
    static = tuple(_triple(item, number) for number, item in enumerate(data.get("static") or ()))
    return Task(data["query"], data["dialect"], semantics, static, data.get("options") or {})


def _triple(item: object, number: int) -> Triple:
    if not isinstance(item, list) or len(item) != 3 or not all(isinstance(term, str) for term in item):
        raise LineError(f"field static[{number}]: expected three N-Triples terms")
    return item[0], item[1], item[2]
