"""The commands ``reproduce csrbench``, ``yabench`` and ``tpf``: published figures beside ours."""

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
Out = Annotated[Path | None, typer.Option(help="Write a page too.")]


_app = typer.Typer(help="Published tables and figures, each value beside ours.", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    """Add this group's commands."""
    app.add_typer(_app, name="reproduce")


@_app.command("csrbench")
def csrbench(
    data: Data,
    runs: Annotated[Path, typer.Option(help="Where cells are kept.")] = Path("runs/csrbench"),
    again: Annotated[bool, typer.Option("--again", help="Measure cells again that are kept.")] = False,
    as_json: AsJson = False,
    out: Out = None,
) -> None:
    """CSRBench's table 2 from the recorded answers of C-SPARQL, CQELS and SPARQLstream."""
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
    loads: Annotated[str, typer.Option(callback=_loads, help="Which loads.")] = "small,medium,big",
    engines: Annotated[str | None, typer.Option(help="Run them on these engines: csparql,cqels,live.")] = None,
    repetitions: Annotated[int, typer.Option(callback=_positive, help="How often each run is done.")] = 10,
    only: Annotated[list[str] | None, typer.Option(help="Only these tests: E1/small, E3, E4, Q1 ...")] = None,
    hurricane: Annotated[Path | None, typer.Option(help="CSRBench's stream for Q1 to Q7; a stand-in without.")] = None,
    runs: Annotated[Path, typer.Option(help="Where the runs on engines are kept.")] = Path("runs/yabench"),
    as_json: AsJson = False,
    out: Out = None,
    master: Master = None,
) -> None:
    """YABench's expected sizes, its gracious mode, and what its text says of its figures; or all on real engines."""
    if engines is not None:
        from streamgauge.papers.yabench.engines import YabenchRequest, on_engines

        wanted = YabenchRequest(tuple(engines.split(",")), tuple(only or ()), data, hurricane, runs, repetitions)
        _foretell(not only, "hours: streams are fed in real time, --only and --repetitions take less")
        _do(lambda tell: on_engines(wanted, lambda: spark(master), tell), as_json=as_json, out=out, master=master)
    if data is None:
        raise typer.BadParameter("name the folder of the paper's data", param_hint="--data")
    from streamgauge.papers.yabench.page import reproduce

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
        bool, typer.Option("--quick", help="Fewer clients and systems, shorter: an hour in the place of a day.")
    ] = False,
    only: Annotated[list[str] | None, typer.Option(help="scaling, annotations, static, proxy, herd, capacity.")] = None,
    kept: Annotated[bool, typer.Option("--kept", help="Measure nothing, show what is kept.")] = False,
    runs: Annotated[Path, typer.Option(help="Where what was measured is kept.")] = Path("runs/tpf"),
    as_json: AsJson = False,
    out: Out = None,
    master: Master = None,
) -> None:
    """The TPF Query Streamer's experiment: servers and crowds of clients, done here beside the paper's claims."""
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
        str, typer.Option(help="Published is what the first variable names, or any: first, any.")
    ] = "first",
    strategy: Annotated[list[str] | None, typer.Option(help="Only these strategies of the broker.")] = None,
    only: Annotated[
        list[str] | None, typer.Option(help="counts, together, alone, publishers, channels, systems.")
    ] = None,
    judge: Annotated[bool, typer.Option(help="Let the common oracle judge channels too.")] = True,
    ontology: Annotated[Path | None, typer.Option(help="Its axioms; the workload's own unless given.")] = None,
    runs: Annotated[Path, typer.Option(help="Where what was run is kept.")] = Path("runs/sepbm"),
    as_json: AsJson = False,
    out: Out = None,
    master: Master = None,
) -> None:
    """SEP-BM: strategies of the broker on the paper's benchmark; publishers, channels and other systems beside."""
    from streamgauge.formats.streams import read_triples
    from streamgauge.papers.sepbm.measure import PARTS, STRATEGIES, SepbmExtent, SepbmRequest, reproduce

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
    """Say how long all of a reproduction takes (measured, docs/reproduce.md); parts of it are not foretold."""
    if whole:
        typer.echo(f"reproduce: all of it takes {sentence}; what is finished is kept", err=True)


def _do(
    work: Callable[[Callable[[str, float], None]], Reproduction],
    *,
    as_json: bool,
    out: Path | None,
    master: str | None = None,
) -> NoReturn:
    """Reproduce, show, write; exit code 0 when every compared value came out, else 1."""
    from streamgauge.papers.reproduction import shown, write

    console = Terminal(stderr=True)
    try:
        with telling(console, "reproduce") as tell:
            reproduction = work(tell)
    except KeyboardInterrupt:
        console.print("stopped; what is finished is kept, the same command goes on from there")
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
