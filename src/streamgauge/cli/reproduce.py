"""The commands ``reproduce csrbench``, ``yabench``, ``tpf`` and ``sepbm``: published figures next to ours."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from streamgauge.cli.exits import Exit
from streamgauge.cli.options import AsJson, Master, chosen
from streamgauge.cli.spark import spark, tell_unused
from streamgauge.cli.terminal import Terminal, printing, telling
from streamgauge.papers.reproduction import Reproduction

Data = Annotated[Path, typer.Option(help="The folder of the paper's data.")]
Out = Annotated[Path | None, typer.Option(help="Also write a page.")]


_app = typer.Typer(help="Published tables and figures, each value next to ours.", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    """Add this group's commands."""
    app.add_typer(_app, name="reproduce")


@_app.command("csrbench")
def csrbench(
    data: Data,
    runs: Annotated[Path, typer.Option(help="The folder for measured cells.")] = Path("runs/csrbench"),
    again: Annotated[bool, typer.Option("--again", help="Repeat stored cells.")] = False,
    as_json: AsJson = False,
    out: Out = None,
) -> None:
    """Reproduce CSRBench's table 2 from the recorded answers of C-SPARQL, CQELS and SPARQLstream."""
    from streamgauge.oracle.diagnosis.diagnose import diagnose
    from streamgauge.papers.csrbench.measure import reproduce

    _do(lambda tell: reproduce(data, diagnose, tell, runs, again=again), as_json=as_json, out=out)


def _loads(value: str) -> str:
    from streamgauge.papers.yabench.measure import LOADS

    return ",".join(chosen(part.strip(), LOADS) for part in value.split(","))


def _positive(value: int) -> int:
    if value < 1:
        raise typer.BadParameter(f"{value}: at least 1")
    return value


@_app.command("yabench")
def yabench(
    data: Annotated[Path | None, typer.Option(help="The folder of the paper's data.")] = None,
    loads: Annotated[str, typer.Option(callback=_loads, help="The loads.")] = "small,medium,big",
    engines: Annotated[str | None, typer.Option(help="Run the tests on these engines: csparql,cqels,live.")] = None,
    repetitions: Annotated[int, typer.Option(callback=_positive, help="Number of repetitions of each run.")] = 10,
    only: Annotated[list[str] | None, typer.Option(help="Only these tests: E1/small, E3, E4, Q1 ...")] = None,
    hurricane: Annotated[
        Path | None, typer.Option(help="CSRBench's stream for Q1 to Q7 (default: a substitute).")
    ] = None,
    runs: Annotated[Path, typer.Option(help="The folder for runs on engines.")] = Path("runs/yabench"),
    as_json: AsJson = False,
    out: Out = None,
    master: Master = None,
) -> None:
    """Reproduce YABench's expected sizes, gracious mode and statements on its figures; or run it on real engines."""
    if engines is not None:
        from streamgauge.papers.yabench.engines import YabenchRequest, on_engines

        wanted = YabenchRequest(tuple(engines.split(",")), tuple(only or ()), data, hurricane, runs, repetitions)
        _foretell(not only, "hours: streams are fed in real time, --only and --repetitions take less")
        _do(lambda tell: on_engines(wanted, lambda: spark(master), tell), as_json=as_json, out=out, master=master)
    # Not reached with --engines: `_do` ends the command.
    if data is None:
        raise typer.BadParameter("name the folder of the paper's data", param_hint="--data")
    from streamgauge.papers.yabench.page import reproduce

    # A name of its own: mypy forgets within a lambda that ``data`` is not None.
    folder = data
    _do(
        lambda tell: reproduce(folder, lambda: spark(master), loads.split(","), tell, runs),
        as_json=as_json,
        out=out,
        master=master,
    )


@_app.command("tpf")
def tpf(
    quick: Annotated[
        bool, typer.Option("--quick", help="Fewer clients and systems, shorter: an hour instead of a day.")
    ] = False,
    only: Annotated[list[str] | None, typer.Option(help="scaling, annotations, static, proxy, herd, capacity.")] = None,
    kept: Annotated[bool, typer.Option("--kept", help="Measure nothing, show stored results.")] = False,
    runs: Annotated[Path, typer.Option(help="The folder for measurements.")] = Path("runs/tpf"),
    as_json: AsJson = False,
    out: Out = None,
    master: Master = None,
) -> None:
    """Reproduce the TPF Query Streamer's experiment, servers and crowds of clients, next to the paper's claims."""
    from streamgauge.papers.tpf.measure import FULL, PARTS, QUICK
    from streamgauge.papers.tpf.page import TpfRequest, reproduce

    only = [chosen(name, PARTS, "--only") for name in only or ()]
    extent = QUICK if quick else FULL
    wanted = TpfRequest(extent, runs, tuple(only or extent.parts), kept)
    _foretell(not (kept or only), "about an hour" if quick else "about 8 hours; --quick and --only take less")
    _do(lambda tell: reproduce(wanted, lambda: spark(master), tell), as_json=as_json, out=out, master=master)


@_app.command("sepbm")
def sepbm(
    universities: Annotated[int, typer.Option(callback=_positive, help="Size of the data; the paper has 10.")] = 1,
    publications: Annotated[int, typer.Option(callback=_positive, help="Length of the sequence.")] = 300,
    rule: Annotated[
        str, typer.Option(help="Publish resources of the first variable, or of any: first, any.")
    ] = "first",
    strategy: Annotated[list[str] | None, typer.Option(help="Only these strategies of the broker.")] = None,
    only: Annotated[
        list[str] | None, typer.Option(help="counts, together, alone, publishers, channels, systems.")
    ] = None,
    judge: Annotated[bool, typer.Option(help="Let the common oracle judge channels too.")] = True,
    ontology: Annotated[Path | None, typer.Option(help="The ontology (default: the workload's own).")] = None,
    runs: Annotated[Path, typer.Option(help="The folder for runs.")] = Path("runs/sepbm"),
    as_json: AsJson = False,
    out: Out = None,
    master: Master = None,
) -> None:
    """Reproduce SEP-BM: strategies of the broker, publishers, channels and other systems."""
    from streamgauge.formats.streams import read_triples
    from streamgauge.papers.sepbm.measure import PARTS, STRATEGIES, SepbmExtent
    from streamgauge.papers.sepbm.page import SepbmRequest, reproduce

    only = [chosen(name, PARTS, "--only") for name in only or ()]
    strategy = [chosen(name, STRATEGIES, "--strategy") for name in strategy or ()]
    rule = chosen(rule, ("first", "any"), "--rule")
    if ontology is not None:
        tuple(read_triples(ontology))  # refused before anything is made
    _foretell(not only, "three quarters of an hour for one university on two cores; --only and --strategy take less")
    extent = SepbmExtent(universities, publications, rule, tuple(strategy or STRATEGIES), tuple(only or PARTS), judge)
    _do(
        lambda tell: reproduce(SepbmRequest(extent, runs, ontology), lambda: spark(master), tell),
        as_json=as_json,
        out=out,
        master=master,
    )


def _foretell(whole: bool, sentence: str) -> None:
    """Print the duration of a whole reproduction (measured, docs/reproduce.md); parts are not estimated."""
    if whole:
        typer.echo(f"reproduce: everything takes {sentence}; finished parts are stored", err=True)


def _do(
    work: Callable[[Callable[[str, float], None]], Reproduction],
    *,
    as_json: bool,
    out: Path | None,
    master: str | None = None,
) -> NoReturn:
    """Reproduce, print and write; exit code 0 if every compared value agrees, else 1."""
    from streamgauge.papers.reproduction import shown, write

    console = Terminal(stderr=True)
    try:
        with telling(console, "reproduce") as tell:
            reproduction = work(tell)
    except KeyboardInterrupt:
        console.print("stopped; finished parts are stored: repeat the command to continue")
        raise typer.Exit(130) from None
    tell_unused(master)
    if out is not None:
        write(reproduction, out)
        console.print(f"page: {out}")
    if as_json:
        same, of = reproduction.compared
        typer.echo(json.dumps({**reproduction.data, "agree": same, "of": of}, indent=2))
    else:
        terminal = printing()
        for part in shown(reproduction):
            terminal.print(part)
    same, of = reproduction.compared
    raise typer.Exit(Exit.RIGHT if same == of else Exit.WRONG)
