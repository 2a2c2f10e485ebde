"""The command ``init``: a stream, a query and an experiment to start from, each with comments."""

from importlib.resources import files
from pathlib import Path
from typing import Annotated, Final

import typer

from streamgauge.formats.files import made_folder
from streamgauge.model.mistake import MistakeError

START: Final = ("experiment.toml", "query.rq", "stream.ttl")
"""The files that are written, from the folder ``start`` beside this module."""


class KeptError(MistakeError, ValueError):
    """A file that is there already; the sentence names the file and says what to do."""


def register(app: typer.Typer) -> None:
    """Add this command."""
    app.command("init")(init)


def init(folder: Annotated[Path, typer.Argument(help="A new folder, or one that is there.")]) -> None:
    """Write a commented experiment, query and stream to start from; no file is overwritten."""
    if there := [name for name in START if (folder / name).exists()]:
        raise KeptError(f"{folder} has {', '.join(there)} already: nothing was written; name another folder")
    made_folder(folder)
    for name in START:
        text = (files("streamgauge.cli") / "start" / name).read_text(encoding="utf-8")
        with (folder / name).open("x", encoding="utf-8", newline="\n") as file:
            file.write(text)
    typer.echo(f"{folder} has a stream, a query and an experiment: streamgauge run {folder / START[0]}")
