"""The command ``init``: a commented stream, query and experiment to start from."""

from pathlib import Path
from typing import Annotated

import typer

from streamgauge.suites.experiments.beginning import write_start


def register(app: typer.Typer) -> None:
    """Add the command ``init``."""
    app.command("init")(init)


def init(folder: Annotated[Path, typer.Argument(help="A new or existing folder.")]) -> None:
    """Write a commented experiment, query and stream to start from; no file is overwritten."""
    experiment = write_start(folder)
    typer.echo(f"{folder} has a stream, a query and an experiment; run it by: streamgauge run {experiment}")
