"""CSRBench's table 2, measured on the recorded answers: each cell by the rule, diagnoses, expected sizes."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from streamgauge import workloads
from streamgauge.formats.fields import encode
from streamgauge.harness.importing import ForeignError, ImportRequest, formats
from streamgauge.model.element import StreamElement
from streamgauge.model.run import Run
from streamgauge.model.semantics import Grain
from streamgauge.model.verdict import Diagnosis, Judgement, Verdict
from streamgauge.papers.csrbench.rules import CsrbenchOracle, ScopeAnswers, counts, grouped, verdict
from streamgauge.papers.reproduction import Reproduction, ReproductionSteps, Tell, paper
from streamgauge.papers.rules import Equality
from streamgauge.query import parse
from streamgauge.report.numbers import NOTHING
from streamgauge.report.sections import PageSection, PageTable, TableLine
from streamgauge.semantics.profiles import profile
from streamgauge.semantics.refusal import RefusedError
from streamgauge.workloads import csrbench

PAPER: Final = paper("csrbench")
QUERIES: Final[list[str]] = PAPER.value("queries")
RULE: Final = PAPER.claims["cell"].measured
TABLE_2: Final[dict[str, list[str]]] = PAPER.value("table_2")
"""The published verdicts of each engine, ``ok`` or ``fail``, by query."""

NAMES: Final = {"csparql": "C-SPARQL", "cqels": "CQELS", "sparqlstream": "SPARQLstream"}
OK, FAIL = "ok", "fail"
GROUP = 1000
"""The span (ms) within which rows sent one by one are grouped into one answer."""

Explain = Callable[[Run, Sequence[StreamElement]], Diagnosis | None]
"""(run, stream) -> the diagnosis of its wrong answers."""


@dataclass(frozen=True)
class CsrbenchRecording:
    """A reading of a recorded file, with its rows grouped or not."""

    file: Path
    run: Run
    how: str


@dataclass(frozen=True)
class TableCell:
    """A cell of table 2; ``reason`` is the paper's; ``t0`` (ms) is the first that fits, ``code_t0`` by its code."""

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
        """Whether our verdict equals the published one."""
        return self.published == self.ours


class CsrbenchData:
    """A data folder with ``stream/`` and ``answers/``; ForeignError names a missing part."""

    def __init__(self, folder: Path) -> None:
        self.answers = folder / "answers"
        self._stream = folder / "stream"
        for part in (self._stream, self.answers / "2013-head"):
            if not part.is_dir():
                raise ForeignError(f"{part}: missing: --data names a folder with stream/ and answers/2013-head/")
        self.elements = csrbench.elements(data=str(self._stream))
        self.integers = csrbench.elements(data=str(self._stream), values="integer")
        self._contents: dict[str, ScopeAnswers] = {}

    def fed(self, engine: str) -> tuple[StreamElement, ...]:
        """The stream as the recorded engine received it: C-SPARQL got whole numbers."""
        return self.integers if engine == "csparql" else self.elements

    def oracle(self, engine: str, query: str, equality: Equality) -> CsrbenchOracle:
        """The oracle for an engine and a query; evaluations are shared by all engines."""
        # Contents depend on the query alone; what differs by engine are scopes and equality.
        if query not in self._contents:
            query_ = parse(workloads.query_text(workloads.load("csrbench"), query))
            self._contents[query] = ScopeAnswers(query_, self.elements)
        return CsrbenchOracle(self._contents[query], profile(engine), equality=equality)

    def run(self, engine: str, query: str, file: Path) -> Run:
        """The answers of a recorded file as a run."""
        text = workloads.query_text(workloads.load("csrbench"), query)
        request = ImportRequest(query=text, stream=self._stream, semantics=profile(engine), engine=engine)
        (imported,) = formats()["csrbench"].read(file, request)
        return imported.run(self.elements[-1].time)

    def recordings(self, engine: str, query: str) -> Iterator[CsrbenchRecording]:
        """The file published with the paper, ungrouped and grouped, then older ones."""
        number = query.removeprefix("q")
        head = self.answers / "2013-head" / f"{engine}-answer-{number}.json"
        run = self.run(engine, query, head)
        yield CsrbenchRecording(head, run, "")
        # Rows that are sent one by one may be a relation each, or one together: both readings are tried.
        if run.header.semantics.grain is Grain.ROW:
            together = replace(run, answers=grouped(run.answers, GROUP))
            yield CsrbenchRecording(head, together, "its rows taken together by the second")
        for file in sorted((self.answers / "2013-history").glob(f"{engine}-answer-{number}.*.json")):
            yield CsrbenchRecording(
                file, self.run(engine, query, file), f"the older recording of commit {file.name.split('.')[1]}"
            )


def cells(data: CsrbenchData, explain: Explain, tell: Tell, steps: ReproductionSteps) -> list[TableCell]:
    """The 21 cells of table 2, by engine."""
    cells_: list[TableCell] = []
    for engine, published in TABLE_2.items():
        for query, value in zip(QUERIES, published, strict=True):
            tell(f"{NAMES[engine]} {query.upper()}", len(cells_) / (len(TABLE_2) * len(QUERIES)))
            make = partial(_cell, data, engine, query, value, explain)
            cells_.append(steps.do(f"cell-{engine}-{query}", TableCell, make))
    return cells_


def _cell(data: CsrbenchData, engine: str, query: str, published: str, explain: Explain) -> TableCell:
    """The verdict on the head recording, or on the first recording with the published verdict."""
    head, *others = data.recordings(engine, query)
    oracle = data.oracle(engine, query, Equality.WHOLE)
    first = verdict(head.run, oracle)
    used, best, note = head, first, ""
    if cell_text(first) != published:
        for other in others:
            tried = verdict(other.run, oracle)
            if cell_text(tried) == published:
                used, best = other, tried
                note = f"from {other.how}; the head recording as it is gives {cell_text(first)}: {first.reason}"
                break
    by_code = verdict(used.run, data.oracle(engine, query, Equality.NUMBERS))
    why, unexplained = (None, "") if cell_text(first) == OK else _explained(explain, head.run, data.fed(engine))
    return TableCell(
        engine=engine,
        query=query,
        published=published,
        ours=cell_text(best),
        t0=best.t0 if cell_text(best) == OK else None,
        file=str(used.file.relative_to(data.answers.parent)),
        note="; ".join(filter(None, (note, unexplained))),
        reason=PAPER.value("reasons").get(engine, {}).get(query, ""),
        diagnosis=why,
        code_t0=by_code.t0 if cell_text(by_code) == OK else None,
    )


def _explained(explain: Explain, run: Run, fed: Sequence[StreamElement]) -> tuple[Diagnosis | None, str]:
    """The diagnosis of a failing recording, or the reason why there is none."""
    try:
        explanation = explain(run, fed)
    except RefusedError as error:
        return None, f"no diagnosis: {error}"
    if explanation is not None and not explanation.differs:
        return None, "report by report its answers are those of the declared semantics: no fault to diagnose"
    return explanation, ""


def cell_text(verdict: Verdict) -> str:
    """A verdict in the words of the paper's table."""
    return OK if verdict.judgement is Judgement.RIGHT else FAIL


@dataclass(frozen=True, slots=True)
class ExpectedSize:
    """Expected relations and solutions for one t0 (ms), by whole solutions and by the oracle's code."""

    engine: str
    query: str
    t0: int
    relations: int
    mappings: int
    by_its_code: tuple[int, int]


@dataclass(frozen=True, slots=True)
class ExpectedSizes:
    """The sizes of expected answers for an engine and a query, by t0."""

    counts: tuple[ExpectedSize, ...]


def all_counts(data: CsrbenchData, tell: Tell, steps: ReproductionSteps) -> list[ExpectedSize]:
    """The expected relations and solutions for every candidate t0."""
    sizes: list[ExpectedSize] = []
    for engine in TABLE_2:
        for query in QUERIES:
            tell(f"sizes of {NAMES[engine]} {query.upper()}", 1.0)
            make = partial(_counts, data, engine, query)
            sizes += steps.do(f"counts-{engine}-{query}", ExpectedSizes, make).counts
    return sizes


def _counts(data: CsrbenchData, engine: str, query: str) -> ExpectedSizes:
    whole, code = (data.oracle(engine, query, equality) for equality in (Equality.WHOLE, Equality.NUMBERS))
    sizes = ((t0, counts(whole.output(t0)), counts(code.output(t0))) for t0 in whole.candidates)
    return ExpectedSizes(tuple(ExpectedSize(engine, query, t0, *own, by_code) for t0, own, by_code in sizes))


def reproduce(
    folder: Path,
    explain: Explain,
    tell: Tell = lambda _what, _share: None,
    keep: Path | None = None,
    *,
    again: bool = False,
) -> Reproduction:
    """Table 2 next to ours, the sizes of the expected answers, and diagnoses.

    Cells are stored below ``keep``; with ``again`` all are measured again.
    """
    data = CsrbenchData(folder)
    steps = ReproductionSteps(keep, folder, again=again)
    cells_ = cells(data, explain, tell, steps)
    sizes = all_counts(data, tell, steps)
    steps.end()
    sections = (
        PAPER.section("table-2", (_overview(cells_), _table(cells_)), rule=RULE),
        _why(cells_),
        PAPER.section("sizes", (_sizes(sizes),)),
    )
    document: dict[str, Any] = {
        "paper": PAPER.source,
        "rule": RULE,
        "cells": [_json(cell) for cell in cells_],
        "counts": [encode(count) for count in sizes],
    }
    return PAPER.reproduction("CSRBench, table 2, from the recorded answers", sections, document)


def _json(cell: TableCell) -> dict[str, Any]:
    diagnosis = cell.diagnosis and {"exact": cell.diagnosis.exact, **encode(cell.diagnosis)}
    return {**encode(cell, leave_out={"diagnosis"}), "rule": "csrbench", "agrees": cell.agrees, "diagnosis": diagnosis}


def _overview(cells: Sequence[TableCell]) -> PageTable:
    lines = (
        TableLine((NAMES[engine], *(f"{cell.ours}" for cell in cells if cell.engine == engine))) for engine in TABLE_2
    )
    return PAPER.table("overview", lines, map(str.upper, QUERIES))


def _table(cells: Sequence[TableCell]) -> PageTable:
    lines = (
        TableLine(
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
        for cell in cells
    )
    return PAPER.table("cells", lines)


def _t0(value: int | None) -> str:
    return NOTHING if value is None else f"{value:,}"


def _why(cells: Sequence[TableCell]) -> PageSection:
    diagnosed = [(cell, cell.diagnosis) for cell in cells if cell.diagnosis is not None]
    lines = [TableLine((NAMES[cell.engine], cell.query.upper(), *_diagnosed(why))) for cell, why in diagnosed]
    exact = sum(why.exact for _, why in diagnosed)
    return PAPER.section("diagnosis", (PAPER.table("diagnosis", lines),), exact=exact, of=len(lines))


def _diagnosed(diagnosis: Diagnosis) -> tuple[str, ...]:
    models = [" and ".join(part.sentence for part in model) or "the declared semantics" for model in diagnosis.models]
    message = "; or: ".join(models) or "no model"
    return (
        message if diagnosis.exact else f"none fits; closest: {message}",
        f"{diagnosis.distance:,} of {diagnosis.reports:,}",
        f"{diagnosis.differs:,}",
        _t0(diagnosis.t0),
    )


def _sizes(sizes: Sequence[ExpectedSize]) -> PageTable:
    lines = []
    for engine in TABLE_2:
        for query in QUERIES:
            some = [one for one in sizes if (one.engine, one.query) == (engine, query)]
            text = " ".join(f"({one.relations}, {one.mappings})" for one in some)
            code = " ".join(f"({one.by_its_code[0]}, {one.by_its_code[1]})" for one in some)
            lines.append(TableLine((NAMES[engine], query.upper(), text, "the same" if code == text else code)))
    return PAPER.table("sizes", lines)
