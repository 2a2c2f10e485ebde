"""YABench's ``QR_`` files: the start of the feed, the variables, then the time and the rows of each report.

Times are epoch ms; values are followed by a tab and written without quotes or brackets, so a value with http://,
https:// or urn: is an IRI, one with ``^^`` a typed literal, with ``_:`` a blank node, any other a plain literal.
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyoxigraph as ox

from streamgauge.formats.canonical import to_term
from streamgauge.harness.importing import (
    NS,
    ForeignAnswers,
    ForeignError,
    ImportedRun,
    ImportRequest,
    assemble,
    by_answers,
    read_samples,
    read_text,
)
from streamgauge.model.answer import Answer
from streamgauge.model.terms import Row

NAME = "yabench"
ABOUT = "YABench's QR_ file; SG_ (stream) and P_ (memory, CPU) in its folder are found by their names"

_TIME = re.compile(r"\d{1,18}")
_BLANK = re.compile(r"_:[A-Za-z0-9]+")
_IRI = re.compile(r"(?:https?://|urn:)[^\s<>\"{}|^`\\]*")


def recognises(path: Path) -> bool:
    """Whether a file's name begins with QR_."""
    return path.is_file() and path.name.startswith("QR_")


def read(path: Path, request: ImportRequest) -> Iterator[ImportedRun]:
    """The run of a QR_ file; ForeignError names file and line."""
    request = beside(path, request)
    record = recorded(path, request)
    advance = by_answers(record.answers, record.started, request.semantics)
    yield assemble(path, NAME, record, request, advance)


def beside(path: Path, request: ImportRequest) -> ImportRequest:
    """The request, completed with the stream and samples that YABench writes next to this file."""
    rest = path.name.removeprefix("QR_")
    stream, samples = path.with_name(f"SG_{rest}"), path.with_name(f"P_{rest}")
    return replace(
        request,
        stream=request.stream or (stream if stream.exists() else None),
        samples=request.samples or (samples if samples.exists() else None),
    )


def recorded(path: Path, request: ImportRequest) -> ForeignAnswers:
    """The answers of a QR_ file, with the requested samples."""
    lines = list(enumerate(read_text(path).split("\n"), 1))
    while lines and not lines[-1][1]:
        lines.pop()
    started = _time(path, *lines[0]) * NS if lines else 0
    if not lines:
        raise ForeignError(f"{path}: empty: expected the start of the feed in epoch ms on its first line")
    answers, notes = _AnswerFile(path).answers(lines[1:])
    name, samples = read_samples(request.samples, started) if request.samples else (None, ())
    if samples:
        notes.append("samples are relative to the start of the engine's process, an unknown time before the feed began")
    return ForeignAnswers(answers, name or "unknown", started, 1.0, samples, tuple(notes))


def _time(path: Path, number: int, line: str) -> int:
    if not _TIME.fullmatch(line.strip()):
        raise ForeignError(f"{path}, line {number}: expected a time in epoch ms: {line[:80]}")
    return int(line)


class _AnswerFile:
    """Reads the lines of one file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._short = 0

    def answers(self, lines: list[tuple[int, str]]) -> tuple[tuple[Answer, ...], list[str]]:
        """(the reports, notes on irregularities)."""
        if not lines:
            return (), ["no report at all"]
        variables = tuple(lines[0][1].rstrip("\r").removesuffix("\t").split("\t"))
        if "" in variables or len(set(variables)) < len(variables):
            raise ForeignError(
                f"{self._path}, line {lines[0][0]}: expected the names of variables, each followed by a tab"
            )
        answers: list[tuple[int, list[Row]]] = []
        for number, line in lines[1:]:
            # Every value is followed by a tab, so a line without one is a report's time.
            if "\t" not in line:
                answers.append((_time(self._path, number, line), []))
            elif not answers:
                raise ForeignError(f"{self._path}, line {number}: a row before the first report's time (epoch ms)")
            else:
                answers[-1][1].append(self._row(number, line, len(variables)))
        notes = [f"{self._short} rows are too short: their missing values are taken as unbound"] if self._short else []
        return tuple(Answer(variables, tuple(rows), received=time * NS) for time, rows in answers), notes

    def _row(self, number: int, line: str, width: int) -> Row:
        values = line.rstrip("\r").removesuffix("\t").split("\t")
        if len(values) > width:
            raise ForeignError(f"{self._path}, line {number}: {len(values)} values for {width} variables")
        self._short += len(values) < width
        try:
            terms = [to_term(_term(value)) for value in values]
        except ValueError as error:
            raise ForeignError(f"{self._path}, line {number}: {error}") from error
        return (*terms, *(None,) * (width - len(values)))


def _term(value: str) -> ox.NamedNode | ox.BlankNode | ox.Literal:
    """The term of a value."""
    if _IRI.fullmatch(value):
        return ox.NamedNode(value)
    if _BLANK.fullmatch(value):
        return ox.BlankNode(value[2:])
    # From the right, as a text may contain the sign itself.
    lexical, typed, datatype = value.rpartition("^^")
    if typed:
        bare = lexical.removeprefix('"').removesuffix('"')
        return ox.Literal(bare, datatype=ox.NamedNode(datatype.removeprefix("<").removesuffix(">")))
    return ox.Literal(value)
