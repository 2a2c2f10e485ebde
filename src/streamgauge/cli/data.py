"""Commands about streams: ``generate`` and ``workloads``."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from itertools import count, product
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer
from rich.console import Console

from streamgauge import workloads as registry
from streamgauge.cli.options import (
    AsJson,
    Lenient,
    SameAs,
    Subsumption,
    chosen,
    completed,
    known_master,
    one_named,
    read_ontologies,
    tell_unit,
    workload_names,
)
from streamgauge.cli.spark import spark
from streamgauge.cli.terminal import Terminal, printing, table, telling
from streamgauge.formats.files import overwrite, stage
from streamgauge.formats.places import local, place
from streamgauge.formats.stream import elements
from streamgauge.formats.streams import FormatError, stream_formats, write_stream
from streamgauge.model.element import StreamElement
from streamgauge.model.fact import Fact
from streamgauge.model.mistake import obstacle
from streamgauge.model.phrases import counted
from streamgauge.workloads.parameters import duration
from streamgauge.workloads.plan import LOCAL_ROWS, Maker, TablePlan, lines_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from streamgauge.reasoning import Rules
    from streamgauge.reasoning.ontology import Extent
    from streamgauge.servers.fragments.labels import Style
    from streamgauge.workloads import Workload

    Made = tuple[Workload, int, Mapping[str, object]]
    """A workload, a seed and the stream's parameters."""

GRAPH: Final = "ntriples"
"""The format of triples without times: sorted lines without duplicates."""

_DAY: Final = datetime(2014, 12, 6)
"""The day of the recorded trains, to which departures' times belong."""

_EXTENTS: Final[dict[str, Extent]] = {"rules": "named", "full": "full"}
"""The extent of each value of ``--closure``."""


def register(app: typer.Typer) -> None:
    """Add this group's commands."""
    app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})(generate)
    app.command("workloads")(list_workloads)


Closing = Annotated[
    str | None,
    typer.Option(help="Add the closure: rules (all that queries need) or full (owl:Thing, unnamed classes)."),
]
Axioms = Annotated[Path | None, typer.Option(help="The ontology for --closure (default: the workload's own).")]

_Master = Annotated[
    str | None,
    typer.Option(
        help=f"Generate on this Spark master (default: on Spark only above {LOCAL_ROWS:,} rows).", callback=known_master
    ),
]


def generate(
    context: typer.Context,
    workload: Annotated[
        str,
        typer.Argument(
            autocompletion=completed(workload_names), help="The workload's name; `streamgauge workloads` lists them."
        ),
    ],
    out: Annotated[
        str, typer.Option(metavar="PATH", help="The file to write, or for Parquet the folder; also hdfs:// or s3a://.")
    ],
    format: Annotated[  # noqa: A002
        str,
        one_named(_formats, help="parquet (the stream table), ntriples (sorted triples without times), nquads, ..."),
    ] = "parquet",
    static: Annotated[
        Path | None, typer.Option(metavar="FILE.nt", help="Also write its static data, as N-Triples.")
    ] = None,
    seed: Annotated[int, typer.Option(help="The same seed gives the same stream.")] = 0,
    annotated: Annotated[
        str | None, typer.Option(help="Methods of time annotation, or all: write data sets to a folder.")
    ] = None,
    closure: Closing = None,
    ontology: Axioms = None,
    ontology_lenient: Lenient = False,
    same_as: SameAs = False,
    subsumption: Subsumption = False,
    begins: Annotated[datetime, typer.Option(help="The date of the stream's time 0, for annotations (UTC).")] = _DAY,
    master: _Master = None,
) -> None:
    """Generate a workload's stream; its parameters are options, as in --stations 50 --interval 1s."""
    module = registry.load(workload)
    words = _options(context.args)
    parameters = registry.parameters(module, words)
    _tell_units(module, words)
    format = chosen(format, _formats(), "--format")  # noqa: A001
    wanted = None if annotated is None else _styles(annotated)
    kind, console = format if wanted is None else "--annotated", Terminal(stderr=True)
    options = {"lenient": ontology_lenient, "same_as": same_as, "subsumption": subsumption}
    rules = None
    if closure is not None or ontology is not None:
        rules = _axioms(module, closure, ontology, kind, console.print, **options)
    target = place(out) if kind == "parquet" else local(out, f"--format {kind}" if wanted is None else kind)
    _refuse_places(module, target, static)
    _refuse_connect(master)
    with telling(console, f"generate {workload}") as tell:
        tell("generating the stream")
        tables = Maker(lambda: spark(master), always=master is not None, tell=tell)
        table_request = (module, seed, parameters)
        if static is not None:
            _write_static(tables, table_request, static)
        if wanted is None and format == "parquet":
            tables.write_stream(*table_request, target)
        elif wanted is not None:
            _write_annotated(tables, table_request, local(out), wanted, begins)
        elif format == GRAPH:
            _write_graph(tables.stream(*table_request), rules, local(out), console)
        else:
            write_stream(elements(tables.stream_table(*table_request)), local(out), format)


def _refuse_connect(master: str | None) -> None:
    """Refuse Spark Connect, which cannot make tables, before waiting for a session."""
    from streamgauge.spark.requirements import classic_only

    if master is not None:
        classic_only(master, "`generate`")


def _refuse_places(workload: Workload, *places: object) -> None:
    """FormatError for an existing file; BadParameter for static data of a workload without any."""
    for file in places:
        if isinstance(file, Path) and file.exists():
            raise FormatError(f"{file} already exists: remove it or name another place")
    if places[-1] is not None and not hasattr(workload, "static_plan"):
        raise typer.BadParameter(f"{workload.NAME} has no static data: leave the option out", param_hint="--static")


def _write_static(tables: Maker, table_request: Made, file: Path) -> None:
    with stage(file) as staged:
        tables.write_static(*table_request, staged)
        overwrite(staged, file)


def _tell_units(module: Workload, words: Mapping[str, str]) -> None:
    """Say that durations without a unit are ms."""
    for name, parameter in module.PARAMETERS.items():
        if parameter.type is duration and name in words:
            tell_unit(words[name], f"--{name.replace('_', '-')}")


def _styles(named: str) -> list[Style]:
    from streamgauge.servers.fragments.annotations import UnknownMethodError

    try:
        return styles(named)
    except UnknownMethodError as error:
        raise typer.BadParameter(str(error), param_hint="--annotated") from error


def _formats() -> tuple[str, ...]:
    return ("parquet", GRAPH, *stream_formats())


def _options(words: list[str]) -> dict[str, str]:
    """``--name value`` and ``--name=value`` pairs as a workload's parameters."""
    options_: dict[str, str] = {}
    rest = iter(words)
    for word in rest:
        # The parameters of workloads are unknown to the parser of options, which passes them on as they are.
        if not word.startswith("--"):
            raise typer.BadParameter(f"{word!r} is neither an option nor its value")
        name, equals, value = word[2:].partition("=")
        options_[name.replace("-", "_")] = value if equals else next(rest, "")
    return options_


def _axioms(
    workload: Workload,
    closure: str | None,
    ontology: Path | None,
    format_: str,
    say: Callable[[str], object],
    **options: bool,
) -> Rules | None:
    """The rules of ``--closure``, ``None`` without it; BadParameter or FormatError for conflicting options.

    ``options`` are those of ``read_ontologies``.
    """
    if closure is None:
        if ontology is not None:
            raise typer.BadParameter("an ontology needs --closure rules or --closure full", param_hint="--ontology")
        return None
    extent = _EXTENTS[chosen(closure, _EXTENTS, "--closure")]
    if format_ != GRAPH:
        raise typer.BadParameter(f"a closure is written with --format {GRAPH}, not {format_}", param_hint="--closure")
    file = ontology or getattr(workload, "ONTOLOGY", None)
    if file is None:
        message = f"the workload {workload.NAME} has no ontology: name one with --ontology FILE"
        raise typer.BadParameter(message, param_hint="--closure")
    from streamgauge.reasoning import OntologyError

    try:
        return read_ontologies((file,), extent, say, **options)
    except OntologyError as error:
        raise FormatError(f"{file}: {error}") from error


def _write_graph(table_plan: TablePlan | DataFrame, rules: Rules | None, out: Path, console: Console) -> None:
    """Write the triples of a stream as sorted lines without duplicates; with rules also their closure."""
    if isinstance(table_plan, TablePlan):
        _write_here(table_plan, rules, out, console)
        return
    from streamgauge.spark.files import LINE, write_lines

    if rules is None:
        write_lines(table_plan.selectExpr(LINE).distinct(), out)
        return
    lines = _closed(table_plan, rules, console).selectExpr(LINE)
    write_lines(lines, out, lambda count: console.print(f"{counted(count, 'triple')} with what follows from them"))


def _write_here(plan: TablePlan, rules: Rules | None, out: Path, console: Console) -> None:
    """``_write_graph`` in this process."""
    import pyarrow.compute as pc

    if rules is None:
        # By Arrow: a million lines as Python strings take ten times the memory.
        lines = pc.unique(lines_of(plan.table()))
        triples = lines.take(pc.sort_indices(lines)).to_pylist()
    else:
        from streamgauge.reasoning import Closure

        columns = (plan.table().column(name).to_pylist() for name in ("subject", "predicate", "object"))
        stated = dict.fromkeys(zip(*columns, strict=True))
        console.print(f"{counted(len(stated), 'statement')}")
        closure = Closure(rules)
        closure.load(stated)
        triples = sorted(f"{' '.join(triple)} ." for triple in closure.facts.match(None, None, None))
        console.print(f"{counted(len(triples), 'triple')} with what follows from them")
    with stage(out) as staged:
        with staged.open("x", encoding="utf-8", newline="\n") as file:
            file.writelines(f"{line}\n" for line in triples)
        overwrite(staged, out)


def _closed(table: DataFrame, rules: Rules, console: Console) -> DataFrame:
    import pyspark.sql

    from streamgauge.spark.entailment import entailed

    def tell(number: int, new: int) -> None:
        console.print(f"round {number}: {new:,} facts that may bring more")

    stated = table.selectExpr("subject", "predicate", "object", "0 lo", "0 hi").persist(pyspark.StorageLevel.DISK_ONLY)
    console.print(f"{stated.count():,} statements")
    return entailed(table.sparkSession, stated, rules, tell)


def styles(text: str) -> list[Style]:
    """Every method of a list (``graphs,singleton``, or ``all``) with two labels; UnknownMethodError.

    Streams do not use the label of an instant, which does not say how long a fact holds.
    """
    from streamgauge.servers.fragments.annotations import methods, named
    from streamgauge.servers.fragments.labels import Label, Style

    wanted = methods() if text == "all" else [name.strip() for name in text.split(",")]
    # A worked example: `graphs,singleton` are four styles, each method with both labels.
    return [Style(name, label) for name, label in product(map(named, wanted), (Label.EXPIRATION, Label.INTERVAL))]


def _write_annotated(
    tables: Maker, table_request: Made, folder: Path, styles: Iterable[Style], begins: datetime
) -> None:
    """Write ``METHOD-LABEL.nq`` for each style; the stream's time 0 is ``begins`` (UTC).

    With interval labels every fact is written, with expirations only the latest one of each subject and predicate, as
    in the paper. FormatError if a file cannot be written.
    """
    zero = int(begins.replace(tzinfo=UTC).timestamp() * 1000)
    facts = [fact for element in elements(tables.stream_table(*table_request)) for fact in facts_of(element, zero)]
    still = [Fact(triple) for triple in tables.static_triples(*table_request)]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for style in styles:
            _write_facts(folder, style, still, facts)
    except OSError as error:
        raise FormatError(f"{folder}: could not be written: {obstacle(error)}") from error


def facts_of(element: StreamElement, begins: int) -> Iterator[Fact]:
    """The facts of an element with the times between which they hold."""
    final = None if element.until is None else begins + element.until
    return (Fact(triple, begins + element.time, final) for triple in element.added)


def latest(facts: Iterable[Fact]) -> list[Fact]:
    """The last fact of each subject and predicate: newer versions replace older ones (section 5.1)."""
    # Facts come in order of time, so the last one of each key in the dict is the newest.
    return list({fact.triple[:2]: fact for fact in facts}.values())


def _write_facts(folder: Path, style: Style, still: list[Fact], facts: list[Fact]) -> None:
    from streamgauge.servers.fragments.annotations import method
    from streamgauge.servers.fragments.labels import Label

    numbers = count(1)
    dated = facts if style.label is Label.INTERVAL else latest(facts)
    quads = method(style.method).annotate([*still, *dated], style, lambda _shared: str(next(numbers)))
    text = "".join(f"{' '.join(filter(None, quad))} .\n" for quad, _ in quads)
    (folder / f"{style.method}-{style.label}.nq").write_text(text, encoding="utf-8")


def list_workloads(as_json: AsJson = False) -> None:
    """List the workloads with their parameters and queries."""
    workloads = [registry.load(name) for name in registry.names()]
    if as_json:
        typer.echo(json.dumps([_describe(workload) for workload in workloads], indent=2))
        return
    console = printing()
    for workload in workloads:
        console.print(f"[bold]{workload.NAME}[/bold]  {workload.ABOUT}")
        console.print(f"queries: {', '.join(registry.queries(workload))}")
        shown = table("parameter", "default", "meaning")
        for name, parameter in workload.PARAMETERS.items():
            shown.add_row(f"--{name.replace('_', '-')}", str(parameter.default), parameter.help)
        console.print(shown)


def _describe(workload: registry.Workload) -> dict[str, object]:
    parameters = [
        {"name": name, "default": str(parameter.default), "help": parameter.help}
        for name, parameter in workload.PARAMETERS.items()
    ]
    return {
        "name": workload.NAME,
        "about": workload.ABOUT,
        "queries": list(registry.queries(workload)),
        "parameters": parameters,
    }
