"""The common part of ``broker verify`` and ``fragments verify``: damages in words, exit code 1 where there are some."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from streamgauge.cli.exits import Exit
from streamgauge.servers.durability import Inspection, Saved

Target = Annotated[Path | None, typer.Option("--save-to", metavar="NEW", help="Write what is sound there.")]


def reported(
    path: Path, verify: Callable[[Path], Inspection], save: Callable[[Path, Path], Saved], new: Path | None
) -> None:
    """Print what a check finds and, where it is asked for, what was saved and what is lost; exit with 0 or 1."""
    found = verify(path)
    for damage in found.damages:
        typer.echo(f"{path}: damaged: {damage}")
    if found.more:
        typer.echo(f"{path}: and {found.more:,} more")
    typer.echo(f"{path}: {'sound' if found.whole else 'damaged, still sound'}: {found.remains}")
    if new is not None:
        saved = save(path, new)
        typer.echo(f"{new}: {saved.kept}")
        for loss in saved.losses:
            typer.echo(f"{new}: lost: {loss}")
    raise typer.Exit(Exit.RIGHT if found.whole else Exit.WRONG)
