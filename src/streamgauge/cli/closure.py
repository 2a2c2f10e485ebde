"""Triples of a workload as one sorted file, with what an ontology derives of them (``generate --closure``)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow.compute as pc
import typer

from streamgauge.cli.data import GRAPH
from streamgauge.cli.names import chosen
from streamgauge.cli.ontologies import read_ontologies
from streamgauge.formats.atomic import making, put
from streamgauge.formats.streams import FormatError
from streamgauge.model.counts import counted
from streamgauge.reasoning import Closure, OntologyError, Rules
from streamgauge.reasoning.ontology import Extent
from streamgauge.workloads import Workload
from streamgauge.workloads.plan import TablePlan, lines_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from rich.console import Console


_EXTENTS: Final[dict[str, Extent]] = {"rules": "named", "full": "full"}


def read_axioms(
    workload: Workload,
    closure: str | None,
    ontology: Path | None,
    format_: str,
    say: Callable[[str], object],
    **options: bool,
) -> Rules | None:
    """The rules of ``--closure``, ``None`` without it; BadParameter or FormatError says what does not go together.

    ``options`` are those of ``read_ontologies``.
    """
    if closure is None:
        if ontology is not None:
            raise typer.BadParameter("an ontology is for --closure rules or --closure full", param_hint="--ontology")
        return None
    extent = _EXTENTS[chosen(closure, _EXTENTS, "--closure")]
    if format_ != GRAPH:
        raise typer.BadParameter(f"a closure is written with --format {GRAPH}, not {format_}", param_hint="--closure")
    file = ontology or getattr(workload, "ONTOLOGY", None)
    if file is None:
        said = f"the workload {workload.NAME} has no ontology: name one with --ontology FILE"
        raise typer.BadParameter(said, param_hint="--closure")
    try:
        return read_ontologies((file,), extent, say, **options)
    except OntologyError as error:
        raise FormatError(f"{file}: {error}") from error


def write_graph(made: TablePlan | DataFrame, rules: Rules | None, out: Path, console: Console) -> None:
    """The triples of a stream as sorted lines, each once; with rules also what follows, and how far it is."""
    if isinstance(made, TablePlan):
        _write_here(made, rules, out, console)
        return
    from streamgauge.spark.files import LINE, write_lines

    if rules is None:
        write_lines(made.selectExpr(LINE).distinct(), out)
        return
    found = _closed(made, rules, console).selectExpr(LINE)
    write_lines(found, out, lambda count: console.print(f"{counted(count, 'triple')} with what follows from them"))


def _write_here(plan: TablePlan, rules: Rules | None, out: Path, console: Console) -> None:
    """The same in this process."""
    if rules is None:
        lines = pc.unique(lines_of(plan.table()))
        found = lines.take(pc.sort_indices(lines)).to_pylist()
    else:
        columns = (plan.table().column(name).to_pylist() for name in ("subject", "predicate", "object"))
        stated = dict.fromkeys(zip(*columns, strict=True))
        console.print(f"{counted(len(stated), 'statement')}")
        closure = Closure(rules)
        closure.load(stated)
        found = sorted(f"{' '.join(triple)} ." for triple in closure.facts.match(None, None, None))
        console.print(f"{counted(len(found), 'triple')} with what follows from them")
    with making(out) as place:
        with place.open("x", encoding="utf-8", newline="\n") as file:
            file.writelines(f"{line}\n" for line in found)
        put(place, out)


def _closed(table: DataFrame, rules: Rules, console: Console) -> DataFrame:
    from pyspark import StorageLevel

    from streamgauge.spark.entailment import entailed

    def tell(number: int, new: int) -> None:
        console.print(f"round {number}: {new:,} facts that may bring more")

    stated = table.selectExpr("subject", "predicate", "object", "0 lo", "0 hi").persist(StorageLevel.DISK_ONLY)
    console.print(f"{stated.count():,} statements")
    return entailed(table.sparkSession, stated, rules, tell)
