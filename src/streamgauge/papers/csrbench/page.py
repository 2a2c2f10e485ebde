"""CSRBench's table 2 beside ours, the sizes of the expected answers, and why answers fail."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from streamgauge.formats.fields import encode
from streamgauge.model.verdict import Diagnosis
from streamgauge.papers.csrbench.measure import (
    NAMES,
    PAPER,
    QUERIES,
    TABLE_2,
    CsrbenchData,
    ExpectedSize,
    Explain,
    TableCell,
    all_counts,
    cells,
)
from streamgauge.papers.reproduction import Reproduction, ReproductionSteps, Tell
from streamgauge.report.numbers import NOTHING
from streamgauge.report.sections import PageSection, PageTable, TableLine

RULE = PAPER.claims["cell"].measured


def reproduce(
    folder: Path, explain: Explain, tell: Tell = lambda _what, _share: None, keep: Path | None = None
) -> Reproduction:
    """Table 2 beside ours, the sizes of the expected answers, and why answers fail.

    Cells are kept below ``keep`` until all are done.
    """
    data = CsrbenchData(folder)
    steps = ReproductionSteps(keep, folder)
    found = cells(data, explain, tell, steps)
    sizes = all_counts(data, tell, steps)
    steps.end()
    sections = (
        PageSection(
            "table-2", "Table 2: who answers correctly", (f"The rule: {RULE}.",), (_overview(found), _table(found))
        ),
        PageSection("diagnosis", "Why answers fail", _why(found), (_diagnoses(found),)),
        PageSection(
            "sizes",
            "What is expected, by t0",
            ("How many relations, and solutions in them, the oracle expects when the first window starts at t0.",),
            (_sizes(sizes),),
        ),
    )
    told: dict[str, Any] = {
        "paper": PAPER.source,
        "rule": RULE,
        "cells": [_json(cell) for cell in found],
        "counts": [encode(count) for count in sizes],
    }
    return PAPER.reproduction("CSRBench, table 2, from the recorded answers", sections, told)


def _json(cell: TableCell) -> dict[str, Any]:
    diagnosis = cell.diagnosis and {"exact": cell.diagnosis.exact, **encode(cell.diagnosis)}
    return {**encode(cell, leave_out={"diagnosis"}), "rule": "csrbench", "agrees": cell.agrees, "diagnosis": diagnosis}


def _overview(found: Sequence[TableCell]) -> PageTable:
    lines = [
        TableLine((NAMES[engine], *(f"{cell.ours}" for cell in found if cell.engine == engine))) for engine in TABLE_2
    ]
    return PageTable("Ours at a glance", ("engine", *(query.upper() for query in QUERIES)), tuple(lines))


def _table(found: Sequence[TableCell]) -> PageTable:
    columns = ("engine", "query", "published", "ours", "t0, ms", "t0 by its code, ms", "recorded file", "note")
    lines = tuple(
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
        for cell in found
    )
    note = (
        "In the oracle's code, solutions that hold a number are equal when their numbers are; ours compares whole "
        "solutions, numbers by value, as the paper means it. No verdict differs, one t0 does."
    )
    return PageTable("Every cell", columns, lines, note)


def _t0(value: int | None) -> str:
    return NOTHING if value is None else f"{value:,}"


def _why(found: Sequence[TableCell]) -> tuple[str, ...]:
    exact = sum(cell.diagnosis is not None and cell.diagnosis.exact for cell in found)
    of = sum(cell.diagnosis is not None for cell in found)
    return (
        "A diagnosis is claimed only when the model that it names gives exactly the recorded answers; otherwise the "
        f"closest is shown with its distance. {exact} of {of} are exact.",
    )


def _diagnoses(found: Sequence[TableCell]) -> PageTable:
    lines = [
        TableLine((NAMES[cell.engine], cell.query.upper(), *_diagnosed(cell.diagnosis)))
        for cell in found
        if cell.diagnosis is not None
    ]
    columns = ("engine", "query", "model", "reports that differ", "declared semantics: differ", "t0, ms")
    return PageTable("Head recordings that fail the rule", columns, tuple(lines))


def _diagnosed(diagnosis: Diagnosis) -> tuple[str, ...]:
    models = [" and ".join(part.sentence for part in model) or "the declared semantics" for model in diagnosis.models]
    said = "; or: ".join(models) or "no model"
    return (
        said if diagnosis.exact else f"none fits; closest: {said}",
        f"{diagnosis.distance:,} of {diagnosis.reports:,}",
        f"{diagnosis.differs:,}",
        _t0(diagnosis.t0),
    )


def _sizes(found: Sequence[ExpectedSize]) -> PageTable:
    lines = []
    for engine in TABLE_2:
        for query in QUERIES:
            some = [one for one in found if (one.engine, one.query) == (engine, query)]
            told = " ".join(f"({one.relations}, {one.mappings})" for one in some)
            code = " ".join(f"({one.by_its_code[0]}, {one.by_its_code[1]})" for one in some)
            lines.append(TableLine((NAMES[engine], query.upper(), told, "the same" if code == told else code)))
    columns = ("engine", "query", "(relations, solutions) for t0 = 0, 1, 2, ... s", "by its code")
    return PageTable("Sizes of the expected answers", columns, tuple(lines))
