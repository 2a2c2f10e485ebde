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
from streamgauge.wire.formats import FormatError, stream_formats, write_stream
from streamgauge.wire.stream import elements
from streamgauge.workloads.parameters import duration
from streamgauge.workloads.tables import LOCAL_ROWS, Maker

if TYPE_CHECKING:
    from streamgauge.services.fragments.style import Style

GRAPH: Final = "ntriples"
"""The format of triples without times: sorted lines, each once."""
_DAY = datetime(2014, 12, 6)
"""The day of the recorded trains, which departures' times are of."""


def register(app: typer.Typer) -> None:
    """Add this group's commands."""
    app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})(generate)
    app.command("workloads")(list_workloads)


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
    closure: Annotated[
        str | None,
        typer.Option(help="Also what follows: rules (all that queries need) or full (owl:Thing, unnamed ones)."),
    ] = None,
    ontology: Annotated[
        Path | None, typer.Option(help="Its axioms, for --closure; the workload's own unless given.")
    ] = None,
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
    for name, parameter in module.PARAMETERS.items():
        if parameter.type is duration and name in words:
            tell_unit(words[name], f"--{name.replace('_', '-')}")
    format = chosen(format, _formats(), "--format")  # noqa: A001
    wanted = None if annotated is None else _styles(annotated)
    kind, console = format if wanted is None else "--annotated", Console(stderr=True)
    options = {"lenient": ontology_lenient, "same_as": same_as, "subsumption": subsumption}
    rules = None
    if closure is not None or ontology is not None:
        from streamgauge.cli.closing import read_axioms

        rules = read_axioms(module, closure, ontology, kind, console.print, **options)
    if out.exists():
        raise FormatError(f"{out} is there already: remove it or name another place")
    with telling(console, f"generate {workload}") as tell:
        tell("making the stream")
        tables = Maker(lambda: spark(master), always=master is not None, tell=tell)
        if wanted is None and format == "parquet":
            tables.write_stream(module, seed, given, out)
            return
        if wanted is None and format == GRAPH:
            from streamgauge.cli.closing import write_graph

            write_graph(tables.stream(module, seed, given), rules, out, console)
            return
        found = elements(tables.stream_table(module, seed, given))
        if wanted is None:
            write_stream(found, out, format)
            return
        from streamgauge.cli.annotated import write

        still = tables.static_triples(module, seed, given)
        write(found, still, out, wanted, int(begins.replace(tzinfo=UTC).timestamp() * 1000))


def _styles(named: str) -> list[Style]:
    from streamgauge.cli.annotated import styles
    from streamgauge.services.fragments.annotations import UnknownMethodError

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
