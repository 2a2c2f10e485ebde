"""The commands ``reproduce csrbench`` and ``reproduce yabench``: published figures beside ours."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from streamgauge.cli.exits import Exit
from streamgauge.cli.spark import spark
from streamgauge.report.reproduce.result import Reproduction

Data = Annotated[Path, typer.Option(help="The folder of the paper's data.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Out = Annotated[Path | None, typer.Option(help="Write a page too.")]

WIDTH = 160
"""Of tables that are not printed to a terminal."""

_app = typer.Typer(help="Published tables and figures, each value beside ours.", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    """Add this group's commands."""
    app.add_typer(_app, name="reproduce")


@_app.command("csrbench")
def csrbench(data: Data, as_json: AsJson = False, out: Out = None) -> None:
    """CSRBench's table 2 from the recorded answers of C-SPARQL, CQELS and SPARQLstream."""
    from streamgauge.bench.diagnosis.diagnose import diagnose
    from streamgauge.report.reproduce.csrbench import reproduce

    _do(lambda tell: reproduce(data, diagnose, tell), as_json=as_json, out=out)


def _loads(value: str) -> str:
    from streamgauge.report.reproduce.yabench_published import LOADS

    if not value or set(value.split(",")) - set(LOADS):
        raise typer.BadParameter(f"{value!r}: choose from {', '.join(LOADS)}, separated by commas")
    return value


@_app.command("yabench")
def yabench(
    data: Data,
    loads: Annotated[str, typer.Option(callback=_loads, help="Which loads.")] = "small,medium,big",
    as_json: AsJson = False,
    out: Out = None,
    master: Annotated[str | None, typer.Option(help="Spark master, local[*] unless given.")] = None,
) -> None:
    """YABench's expected sizes, its gracious mode, and what its text says of its figures."""
    from streamgauge.report.reproduce.yabench import reproduce

    _do(lambda tell: reproduce(data, lambda: spark(master), loads.split(","), tell), as_json=as_json, out=out)


def _do(work: Callable[[Callable[[str, float], None]], Reproduction], *, as_json: bool, out: Path | None) -> None:
    """Reproduce, show, write; exit code 0 when every compared value came out, else 1."""
    from streamgauge.report.reproduce.page import shown, write

    console = Console(stderr=True)
    with console.status("reproducing") as status:
        found = work(lambda what, share: status.update(f"reproducing: {what} ({share:.0%})"))
    if out is not None:
        write(found, out)
        console.print(f"page: {out}")
    if as_json:
        same, of = found.compared
        typer.echo(json.dumps({**found.data, "agree": same, "of": of}, indent=2))
    else:
        terminal = Console() if sys.stdout.isatty() else Console(width=WIDTH)
        for part in shown(found):
            terminal.print(part)
    same, of = found.compared
    raise typer.Exit(Exit.RIGHT if same == of else Exit.WRONG)
