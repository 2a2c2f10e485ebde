"""SPARQL 1.1 query results as JSON with timestamps: one document, a list of them, or one per line.

Besides ``head`` and ``results`` (or ``boolean``) a document has ``timestamp`` (the report's application time, ms), and
may have ``received`` (the time of receipt, ms since the feed began) and ``scope`` ([start, end], ms).
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from streamgauge.formats.bounds import BoundError, unique_members
from streamgauge.harness.importing import (
    NS,
    AnswerTimes,
    Fields,
    ForeignAnswers,
    ForeignError,
    ImportedRun,
    ImportRequest,
    assemble,
    by_answers,
    read_text,
)
from streamgauge.model.answer import Answer
from streamgauge.sparql.algebra import FALSE, TRUE

NAME = "sparql-json"
ABOUT = "SPARQL results JSON with timestamps: a document, a list of them, or one per line"

_ENDINGS = (".json", ".srj", ".jsonl", ".ndjson")


def recognises(path: Path) -> bool:
    """Whether a file's first document has a head."""
    if not path.is_file() or path.suffix not in _ENDINGS:
        return False
    try:
        first = next(iter(_documents(path)), None)
    except ForeignError:
        return False
    return first is not None and isinstance(first[1], dict) and "head" in first[1]


def read(path: Path, request: ImportRequest) -> Iterator[ImportedRun]:
    """The run in a file of results; ForeignError names the file, the line and the field."""
    answers = tuple(
        _answer(where, document, request.times or AnswerTimes.INSTANT) for where, document in _documents(path)
    )
    if any(answer.received for answer in answers) and any(not answer.received for answer in answers):
        raise ForeignError(f"{path}: only some results have the field received: give it to all or to none")
    factor = 1.0 if any(answer.received for answer in answers) else None
    recorded = ForeignAnswers(answers, request.engine or path.stem, factor=factor)
    furthest = max((answer.instant or 0 for answer in answers), default=0)
    by_receipt = by_answers(answers, 0, request.semantics)
    yield assemble(path, NAME, recorded, request, lambda query, last: max(by_receipt(query, last), furthest))


def _documents(path: Path) -> Iterator[tuple[str, Any]]:
    """Each document with its place: ``file``, ``file, line 3`` or ``file: [2]``."""
    text = read_text(path)
    try:
        whole = _loads(text)
    except json.JSONDecodeError as error:
        # Several documents, one per line, fail with this error at the second line.
        if error.msg != "Extra data":
            raise ForeignError(f"{path}, line {error.lineno}, column {error.colno}: not JSON: {error.msg}") from error
        yield from _by_line(path, text)
        return
    except RecursionError as error:
        raise ForeignError(f"{path}: this JSON is nested too deeply to be read") from error
    except BoundError as error:
        raise ForeignError(f"{path}: {error}") from error
    if isinstance(whole, list):
        yield from ((f"{path}: [{i}]", document) for i, document in enumerate(whole))
    else:
        yield str(path), whole


def _loads(text: str) -> Any:
    return json.loads(text, object_pairs_hook=unique_members)


def _by_line(path: Path, text: str) -> Iterator[tuple[str, Any]]:
    # Not ``splitlines``, which also cuts at signs that a text of JSON may have in it, such as U+2028.
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            try:
                yield f"{path}, line {number}", _loads(line)
            except json.JSONDecodeError as error:
                raise ForeignError(f"{path}, line {number}, column {error.colno}: not JSON: {error.msg}") from error
            except BoundError as error:
                raise ForeignError(f"{path}, line {number}: {error}") from error


def _answer(where: str, document: Any, times: AnswerTimes) -> Answer:
    fields = Fields(where)
    stamp = fields.member(document, "", "timestamp", int)
    received = fields.member(document, "", "received", int) if "received" in document else 0
    received = stamp if times is AnswerTimes.RECEIVED else received
    instant = stamp if times is AnswerTimes.INSTANT else None
    scope = _scope(fields, document)
    if "boolean" in document:
        value = fields.member(document, "", "boolean", bool)
        return Answer(("ask",), ((TRUE if value else FALSE,),), (), "boolean", instant, scope, received * NS)
    variables = fields.variables(document, "")
    bindings = fields.member(fields.member(document, "", "results", dict), "results", "bindings", list)
    rows = tuple(fields.row(one, variables, f"results.bindings[{i}]") for i, one in enumerate(bindings))
    return Answer(variables, rows, instant=instant, scope=scope, received=received * NS)


def _scope(fields: Fields, document: Any) -> tuple[int, int] | None:
    if "scope" not in document:
        return None
    borders = fields.member(document, "", "scope", list)
    if len(borders) != 2 or any(not isinstance(end, int) or isinstance(end, bool) for end in borders):
        raise fields.fail("scope", f"is {borders!r:.60}: expected [start, end] in ms")
    return borders[0], borders[1]
