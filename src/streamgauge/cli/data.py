"""Commands about streams: ``generate`` and ``workloads``."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer
from rich.console import Console

from streamgauge import workloads as registry
from streamgauge.cli.defined import tell_unit
from streamgauge.cli.names import chosen, completed, one_named, workload_names
from streamgauge.cli.ontologies import Lenient, SameAs, Subsumption
from streamgauge.cli.progress import telling
from streamgauge.cli.spark import spark
from streamgauge.cli.terminal import printing, table
from streamgauge.formats.stream import elements
from streamgauge.formats.streams import FormatError, stream_formats, write_stream
from streamgauge.workloads.parameters import duration
from streamgauge.workloads.plan import LOCAL_ROWS, Maker

if TYPE_CHECKING:
    from collections.abc import Mapping

    from streamgauge.servers.fragments.labels import Style
    from streamgauge.workloads import Workload

    Made = tuple[Workload, int, Mapping[str, object]]
    """A workload, a seed and the parameters that its stream is made with."""

GRAPH: Final = "ntriples"
"""The format of triples without times: sorted lines, each once."""
_DAY = datetime(2014, 12, 6)
"""The day of the recorded trains, which departures' times are of."""


def register(app: typer.Typer) -> None:
    """Add this group's commands."""
    app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})(generate)
    app.command("workloads")(list_workloads)


Closing = Annotated[
    str | None, typer.Option(help="Also what follows: rules (all that queries need) or full (owl:Thing, unnamed ones).")
]
Axioms = Annotated[Path | None, typer.Option(help="Its axioms, for --closure; the workload's own unless given.")]


def generate(
    context: typer.Context,
    workload: Annotated[
        str,
        typer.Argument(
            autocompletion=completed(workload_names), help="The workload's name; `streamgauge workloads` lists them."
        ),
    ],
    out: Annotated[Path, typer.Option(help="The file, or the folder for Parquet, to write.")],
    format: Annotated[  # noqa: A002
        str,
        one_named(_formats, help="parquet (the stream table), ntriples (its triples, sorted, once each), nquads, ..."),
    ] = "parquet",
    seed: Annotated[int, typer.Option(help="The same seed gives the same stream.")] = 0,
    annotated: Annotated[
        str | None, typer.Option(help="Methods of time annotation, or all: data sets in a folder.")
    ] = None,
    closure: Closing = None,
    ontology: Axioms = None,
    ontology_lenient: Lenient = False,
    same_as: SameAs = False,
    subsumption: Subsumption = False,
    begins: Annotated[datetime, typer.Option(help="When the stream's time 0 is, for annotations (UTC).")] = _DAY,
    master: Annotated[
        str | None, typer.Option(help=f"Make it on this Spark master; without, only above {LOCAL_ROWS:,} rows.")
    ] = None,
) -> None:
    """Make a workload's stream; its parameters are options, as in --stations 50 --interval 1s."""
    module = registry.load(workload)
    words = _options(context.args)
    given = registry.parameters(module, words)
    _tell_units(module, words)
    format = chosen(format, _formats(), "--format")  # noqa: A001
    wanted = None if annotated is None else _styles(annotated)
    kind, console = format if wanted is None else "--annotated", Console(stderr=True)
    options = {"lenient": ontology_lenient, "same_as": same_as, "subsumption": subsumption}
    rules = None
    if closure is not None or ontology is not None:
        from streamgauge.cli.closure import read_axioms

        rules = read_axioms(module, closure, ontology, kind, console.print, **options)
    if out.exists():
        raise FormatError(f"{out} is there already: remove it or name another place")
    with telling(console, f"generate {workload}") as tell:
        tell("making the stream")
        tables = Maker(lambda: spark(master), always=master is not None, tell=tell)
        made = (module, seed, given)
        if wanted is not None:
            _write_annotated(tables, made, out, wanted, begins)
        elif format == "parquet":
            tables.write_stream(*made, out)
        elif format == GRAPH:
            from streamgauge.cli.closure import write_graph

            write_graph(tables.stream(*made), rules, out, console)
        else:
            write_stream(elements(tables.stream_table(*made)), out, format)


def _tell_units(module: Workload, words: Mapping[str, str]) -> None:
    """Say of durations that come without a unit that they are ms."""
    for name, parameter in module.PARAMETERS.items():
        if parameter.type is duration and name in words:
            tell_unit(words[name], f"--{name.replace('_', '-')}")


def _write_annotated(tables: Maker, made: Made, out: Path, wanted: list[Style], begins: datetime) -> None:
    """The data sets of these methods of annotation, whose time 0 is ``begins`` (UTC)."""
    from streamgauge.cli.annotated import write

    found, still = elements(tables.stream_table(*made)), tables.static_triples(*made)
    write(found, still, out, wanted, int(begins.replace(tzinfo=UTC).timestamp() * 1000))


def _styles(named: str) -> list[Style]:
    from streamgauge.cli.annotated import styles
    from streamgauge.servers.fragments.annotations import UnknownMethodError

    try:
        return styles(named)
    except UnknownMethodError as error:
        raise typer.BadParameter(str(error), param_hint="--annotated") from error


def _formats() -> tuple[str, ...]:
    return ("parquet", GRAPH, *stream_formats())


def _options(words: list[str]) -> dict[str, str]:
    """``--name value`` and ``--name=value`` pairs as a workload's parameters."""
    given: dict[str, str] = {}
    rest = iter(words)
    for word in rest:
        if not word.startswith("--"):
            raise typer.BadParameter(f"{word!r} is neither an option nor its value")
        name, equals, value = word[2:].partition("=")
        given[name.replace("-", "_")] = value if equals else next(rest, "")
    return given


def list_workloads(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List the workloads with their parameters and queries."""
    found = [registry.load(name) for name in registry.names()]
    if as_json:
        typer.echo(json.dumps([_describe(workload) for workload in found], indent=2))
        return
    console = printing()
    for workload in found:
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
