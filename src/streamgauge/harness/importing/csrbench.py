"""CSRBench's answers: ``{"relations": [{"head", "timestamp", "results": {"bindings": [...]}}, ...]}``.

The meaning of ``timestamp`` depends on the recorder: C-SPARQL's is the report's number times the slide,
CQELS's ms since the registration, SPARQLstream's whole seconds since it.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from streamgauge.harness.importing import (
    NS,
    AnswerTimes,
    Fields,
    ForeignAnswers,
    ForeignError,
    ImportedRun,
    ImportRequest,
    after_last,
    assemble,
    read_json,
)
from streamgauge.model.answer import Answer
from streamgauge.model.query import ContinuousQuery

NAME = "csrbench"
ABOUT = "CSRBench's answer JSON: a list of relations with timestamps"

ENGINES = {"csparql": AnswerTimes.COUNT, "cqels": AnswerTimes.RECEIVED, "sparqlstream": AnswerTimes.RECEIVED}
"""The meaning of timestamps of CSRBench's three engines, by the start of a semantics' or file's name."""


def recognises(path: Path) -> bool:
    """Whether a file is a JSON object with relations."""
    if not path.is_file() or path.suffix != ".json":
        return False
    try:
        document = read_json(path)
    except ForeignError:
        return False
    return isinstance(document, dict) and "relations" in document


def read(path: Path, request: ImportRequest) -> Iterator[ImportedRun]:
    """The run in an answer file; ForeignError names the file and the field."""
    engine = _engine(path, request)
    times = request.times or ENGINES.get(engine)
    if times is None:
        raise ForeignError(
            f"{path}: the meaning of its timestamps is unknown: name it with --times {', '.join(AnswerTimes)}"
        )
    yield assemble(path, NAME, recorded(path, engine, times), request, horizon(path))


def recorded(path: Path, engine: str, times: AnswerTimes) -> ForeignAnswers:
    """The answers in a file whose timestamps mean ``times``."""
    fields = Fields(str(path))
    relations = fields.member(read_json(path), "", "relations", list)
    answers = tuple(_answer(fields, relation, f"relations[{i}]", times) for i, relation in enumerate(relations))
    notes = {
        AnswerTimes.COUNT: "timestamps count the reports and are not a clock: delays are unknown",
        AnswerTimes.RECEIVED: "timestamps are ms since the registration of the query: delays count from there",
        AnswerTimes.INSTANT: "",
    }[times]
    factor = 1.0 if times is AnswerTimes.RECEIVED else None
    return ForeignAnswers(answers, engine, factor=factor, notes=(notes,) if notes else ())


def horizon(path: Path) -> Callable[[ContinuousQuery, int], int]:
    """The end of time (ms): a window's size past the last element, or the latest timestamp of the recording."""
    fields = Fields(str(path))
    relations = fields.member(read_json(path), "", "relations", list)
    stamps = (fields.member(relation, f"relations[{i}]", "timestamp", int) for i, relation in enumerate(relations))
    latest = max(stamps, default=0)
    return lambda query, last: max(after_last(query, last), latest)


def _engine(path: Path, request: ImportRequest) -> str:
    # The semantics first, as it was named on purpose: `cqels-1.x` begins with `cqels`, and a file may have any name.
    names = [*((request.semantics.name,) if request.semantics else ()), path.name]
    return next((engine for name in names for engine in ENGINES if name.startswith(engine)), path.stem)


def _answer(fields: Fields, relation: Any, where: str, times: AnswerTimes) -> Answer:
    stamp = fields.member(relation, where, "timestamp", int)
    variables = fields.variables(relation, where)
    results = fields.member(relation, where, "results", dict)
    bindings = fields.member(results, f"{where}.results", "bindings", list)
    rows = tuple(_row(fields, one, variables, f"{where}.results.bindings[{i}]") for i, one in enumerate(bindings))
    return Answer(
        variables,
        rows,
        instant=stamp if times is AnswerTimes.INSTANT else None,
        received=stamp * NS if times is AnswerTimes.RECEIVED else 0,
    )


def _row(fields: Fields, one: Any, variables: tuple[str, ...], where: str) -> tuple[str | None, ...]:
    return fields.row(fields.member(one, where, "binding", dict), variables, f"{where}.binding")
