"""CSRBench's table 2 from the recorded answers: every cell by its rule, with t0, the file used and the diagnosis."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from streamgauge import workloads
from streamgauge.formats.fields import encode
from streamgauge.harness.importing import ForeignError, ImportRequest, formats
from streamgauge.model.element import StreamElement
from streamgauge.model.run import Run
from streamgauge.model.semantics import Grain
from streamgauge.model.verdict import Diagnosis, Judgement, Verdict
from streamgauge.papers.csrbench_published import FAIL, NAMES, OK, QUERIES, REASONS, SOURCE, TABLE_2
from streamgauge.papers.result import Line, Reproduction, Section, Table
from streamgauge.papers.rules import Equality
from streamgauge.papers.rules.csrbench import Contents, Oracle, counts, grouped, verdict
from streamgauge.papers.steps import Steps
from streamgauge.query import parse
from streamgauge.semantics.profiles import profile
from streamgauge.semantics.refusal import RefusedError
from streamgauge.workloads import csrbench

RULE = (
    "right when for some t0 from 0 to the window's size, a second apart, the recorded relations are a contiguous part "
    "of the expected ones, relation by relation as sets, times ignored"
)
GROUP = 1000
"""Rows that an engine sends one by one are taken together by the second (ms)."""

Explain = Callable[[Run, Sequence[StreamElement]], Diagnosis | None]
"""(run, stream) to why its answers are wrong."""

Tell = Callable[[str, float], None]
"""Told what is being done and how far it is, 0 to 1."""


@dataclass(frozen=True)
class Recording:
    """One way to look at a recorded file: as it is, or its rows taken together."""

    file: Path
    run: Run
    how: str


@dataclass(frozen=True)
class Cell:
    """One cell of table 2; ``reason`` is the paper's; ``t0`` (ms) is the first that fits, ``code_t0`` by its code."""

    engine: str
    query: str
    published: str
    ours: str
    t0: int | None
    file: str
    note: str
    reason: str
    diagnosis: Diagnosis | None
    code_t0: int | None

    @property
    def agrees(self) -> bool:
        """Whether our verdict is the published one."""
        return self.published == self.ours


class Data:
    """The data set of a folder: ``stream/`` and ``answers/``; ForeignError says what is missing."""

    def __init__(self, folder: Path) -> None:
        self.answers = folder / "answers"
        self._stream = folder / "stream"
        for part in (self._stream, self.answers / "2013-head"):
            if not part.is_dir():
                raise ForeignError(f"{part}: missing: --data names a folder with stream/ and answers/2013-head/")
        self.elements = csrbench.elements(data=str(self._stream))
        self.integers = csrbench.elements(data=str(self._stream), values="integer")
        self._contents: dict[str, Contents] = {}

    def fed(self, engine: str) -> tuple[StreamElement, ...]:
        """The stream as the recorded engine was given it: C-SPARQL got whole numbers."""
        return self.integers if engine == "csparql" else self.elements

    def oracle(self, engine: str, query: str, equality: Equality) -> Oracle:
        """The oracle for an engine and a query; what it evaluates is evaluated once for all engines."""
        if query not in self._contents:
            asked = parse(workloads.query_text(workloads.load("csrbench"), query))
            self._contents[query] = Contents(asked, self.elements)
        return Oracle(self._contents[query], profile(engine), equality=equality)

    def run(self, engine: str, query: str, file: Path) -> Run:
        """A recorded file as a run."""
        text = workloads.query_text(workloads.load("csrbench"), query)
        request = ImportRequest(query=text, stream=self._stream, semantics=profile(engine), engine=engine)
        (imported,) = formats()["csrbench"].read(file, request)
        return imported.run(self.elements[-1].time)

    def recordings(self, engine: str, query: str) -> Iterator[Recording]:
        """The file that was published with the paper, as it is and by the second, then older ones."""
        number = query.removeprefix("q")
        head = self.answers / "2013-head" / f"{engine}-answer-{number}.json"
        run = self.run(engine, query, head)
        yield Recording(head, run, "")
        if run.header.semantics.grain is Grain.ROW:
            together = replace(run, answers=grouped(run.answers, GROUP))
            yield Recording(head, together, "its rows taken together by the second")
        for file in sorted((self.answers / "2013-history").glob(f"{engine}-answer-{number}.*.json")):
            yield Recording(
                file, self.run(engine, query, file), f"the older recording of commit {file.name.split('.')[1]}"
            )


def cells(data: Data, explain: Explain, tell: Tell, steps: Steps) -> list[Cell]:
    """All 21 cells, engine by engine."""
    found: list[Cell] = []
    for engine, published in TABLE_2.items():
        for query, value in zip(QUERIES, published, strict=True):
            tell(f"{NAMES[engine]} {query.upper()}", len(found) / (len(TABLE_2) * len(QUERIES)))
            made = partial(_cell, data, engine, query, value, explain)
            found.append(steps.do(f"cell-{engine}-{query}", Cell, made))
    return found


def _cell(data: Data, engine: str, query: str, published: str, explain: Explain) -> Cell:
    """The verdict on the head recording; where it is not the published one, on the first recording that gives that."""
    head, *others = data.recordings(engine, query)
    oracle = data.oracle(engine, query, Equality.WHOLE)
    first = verdict(head.run, oracle)
    used, found, note = head, first, ""
    if said(first) != published:
        for other in others:
            tried = verdict(other.run, oracle)
            if said(tried) == published:
                used, found = other, tried
                note = f"from {other.how}; the head recording as it is gives {said(first)}: {first.reason}"
                break
    by_code = verdict(used.run, data.oracle(engine, query, Equality.NUMBERS))
    why, unexplained = (None, "") if said(first) == OK else _explained(explain, head.run, data.fed(engine))
    return Cell(
        engine=engine,
        query=query,
        published=published,
        ours=said(found),
        t0=found.t0 if said(found) == OK else None,
        file=str(used.file.relative_to(data.answers.parent)),
        note="; ".join(filter(None, (note, unexplained))),
        reason=REASONS.get((engine, query), ""),
        diagnosis=why,
        code_t0=by_code.t0 if said(by_code) == OK else None,
    )


def _explained(explain: Explain, run: Run, fed: Sequence[StreamElement]) -> tuple[Diagnosis | None, str]:
    """The diagnosis of a failing recording; none where, report by report, the declared semantics gives it."""
    try:
        found = explain(run, fed)
    except RefusedError as error:
        return None, f"no diagnosis: {error}"
    if found is not None and not found.differs:
        return None, "report by report its answers are those of the declared semantics: no fault to diagnose"
    return found, ""


def said(found: Verdict) -> str:
    """A verdict as the paper's table has it."""
    return OK if found.judgement is Judgement.RIGHT else FAIL


@dataclass(frozen=True, slots=True)
class Count:
    """What the oracle expects for one t0 (ms): relations and solutions in them, by whole solutions and by its code."""

    engine: str
    query: str
    t0: int
    relations: int
    mappings: int
    by_its_code: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Counts:
    """The counts of an engine and a query, one for each t0."""

    counts: tuple[Count, ...]


def all_counts(data: Data, tell: Tell, steps: Steps) -> list[Count]:
    """How many relations and solutions are expected for every candidate t0."""
    found: list[Count] = []
    for engine in TABLE_2:
        for query in QUERIES:
            tell(f"sizes of {NAMES[engine]} {query.upper()}", 1.0)
            made = partial(_counts, data, engine, query)
            found += steps.do(f"counts-{engine}-{query}", Counts, made).counts
    return found


def _counts(data: Data, engine: str, query: str) -> Counts:
    whole, code = (data.oracle(engine, query, equality) for equality in (Equality.WHOLE, Equality.NUMBERS))
    sizes = ((t0, counts(whole.output(t0)), counts(code.output(t0))) for t0 in whole.candidates)
    return Counts(tuple(Count(engine, query, t0, *own, by_code) for t0, own, by_code in sizes))


def reproduce(
    folder: Path, explain: Explain, tell: Tell = lambda _what, _share: None, keep: Path | None = None
) -> Reproduction:
    """Table 2 beside ours, the sizes of the expected answers, and why answers fail.

    Cells are kept below ``keep`` until all are done.
    """
    data = Data(folder)
    steps = Steps(keep, folder)
    found = cells(data, explain, tell, steps)
    sizes = all_counts(data, tell, steps)
    steps.end()
    sections = (
        Section(
            "table-2", "Table 2: who answers correctly", (f"The rule: {RULE}.",), (_overview(found), _table(found))
        ),
        Section("diagnosis", "Why answers fail", _why(found), (_diagnoses(found),)),
        Section(
            "sizes",
            "What is expected, by t0",
            ("How many relations, and solutions in them, the oracle expects when the first window starts at t0.",),
            (_sizes(sizes),),
        ),
    )
    told: dict[str, Any] = {
        "paper": SOURCE,
        "rule": RULE,
        "cells": [_json(cell) for cell in found],
        "counts": [encode(count) for count in sizes],
    }
    return Reproduction("CSRBench, table 2, from the recorded answers", SOURCE, sections, told)


def _json(cell: Cell) -> dict[str, Any]:
    diagnosis = cell.diagnosis and {"exact": cell.diagnosis.exact, **encode(cell.diagnosis)}
    return {**encode(cell, leave_out={"diagnosis"}), "rule": "csrbench", "agrees": cell.agrees, "diagnosis": diagnosis}


def _overview(found: Sequence[Cell]) -> Table:
    lines = [Line((NAMES[engine], *(f"{cell.ours}" for cell in found if cell.engine == engine))) for engine in TABLE_2]
    return Table("Ours at a glance", ("engine", *(query.upper() for query in QUERIES)), tuple(lines))


def _table(found: Sequence[Cell]) -> Table:
    columns = ("engine", "query", "published", "ours", "t0, ms", "t0 by its code, ms", "recorded file", "note")
    lines = tuple(
        Line(
            (
                NAMES[cell.engine],
                cell.query.upper(),
                cell.published,
                cell.ours,
                _t0(cell.t0),
                _t0(cell.code_t0),
                cell.file,
                cell.note or cell.reason,
            ),
            cell.agrees,
        )
        for cell in found
    )
    note = (
        "In the oracle's code, solutions that hold a number are equal when their numbers are; ours compares whole "
        "solutions, numbers by value, as the paper means it. No verdict differs, one t0 does."
    )
    return Table("Every cell", columns, lines, note)


def _t0(value: int | None) -> str:
    return "–" if value is None else f"{value:,}"


def _why(found: Sequence[Cell]) -> tuple[str, ...]:
    exact = sum(cell.diagnosis is not None and cell.diagnosis.exact for cell in found)
    of = sum(cell.diagnosis is not None for cell in found)
    return (
        "A diagnosis is claimed only when the model that it names gives exactly the recorded answers; otherwise the "
        f"closest is shown with its distance. {exact} of {of} are exact.",
    )


def _diagnoses(found: Sequence[Cell]) -> Table:
    lines = [
        Line((NAMES[cell.engine], cell.query.upper(), *_diagnosed(cell.diagnosis)))
        for cell in found
        if cell.diagnosis is not None
    ]
    columns = ("engine", "query", "model", "reports that differ", "declared semantics: differ", "t0, ms")
    return Table("Head recordings that fail the rule", columns, tuple(lines))


def _diagnosed(diagnosis: Diagnosis) -> tuple[str, ...]:
    models = [" and ".join(part.sentence for part in model) or "the declared semantics" for model in diagnosis.models]
    said = "; or: ".join(models) or "no model"
    return (
        said if diagnosis.exact else f"none fits; closest: {said}",
        f"{diagnosis.distance:,} of {diagnosis.reports:,}",
        f"{diagnosis.differs:,}",
        _t0(diagnosis.t0),
    )


def _sizes(found: Sequence[Count]) -> Table:
    lines = []
    for engine in TABLE_2:
        for query in QUERIES:
            some = [one for one in found if (one.engine, one.query) == (engine, query)]
            told = " ".join(f"({one.relations}, {one.mappings})" for one in some)
            code = " ".join(f"({one.by_its_code[0]}, {one.by_its_code[1]})" for one in some)
            lines.append(Line((NAMES[engine], query.upper(), told, "the same" if code == told else code)))
    columns = ("engine", "query", "(relations, solutions) for t0 = 0, 1, 2, ... s", "by its code")
    return Table("Sizes of the expected answers", columns, tuple(lines))
