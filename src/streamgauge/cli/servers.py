"""Common parts of the servers' commands: groups, options, tokens, and the output of ``verify``."""

import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Final

import typer

from streamgauge.cli.exits import Exit
from streamgauge.formats.files import read_text
from streamgauge.model.mistake import MistakeError
from streamgauge.servers.durability import Inspection, Saved
from streamgauge.sources.contract import read_secret

TOKEN: Final = "STREAMGAUGE_TOKEN"
"""The environment variable with a token."""

TOKEN_FILE: Final = "STREAMGAUGE_TOKEN_FILE"
"""The environment variable with the path of a file that contains only a token."""


Host = Annotated[str, typer.Option(help="The address to bind to.")]
AllowedOrigins = Annotated[
    list[str] | None, typer.Option(metavar="ORIGIN", help="Allow web pages of this origin; * for all.")
]
Connections = Annotated[int, typer.Option(min=1, help="Maximum number of connections.")]
RequestBytes = Annotated[int, typer.Option(min=1024, help="Maximum size of a request in bytes.")]
Patience = Annotated[str, typer.Option(metavar="DURATION", help="How long the broker may be unavailable: 10m.")]
MaxMessage = Annotated[int, typer.Option(min=1024, help="Maximum size of a notification or answer in bytes.")]
SavedTo = Annotated[Path | None, typer.Option("--save-to", metavar="NEW", help="Write the sound data to a new place.")]
BROKER: Final = "http://127.0.0.1:4200"
"""The default address of a broker."""


def add_group(app: typer.Typer, name: str, about: str, *commands: Callable[..., None]) -> None:
    """Add a group of commands, each named after its function."""
    group = typer.Typer(help=about, no_args_is_help=True)
    for command in commands:
        group.command(command.__name__)(command)
    group.callback()(lambda: None)  # without one, a single command would be the group
    app.add_typer(group, name=name)


def say(sentence: str) -> None:
    """Print a sentence on standard error."""
    typer.echo(sentence, err=True)


def say_again(why: str, wait: float) -> None:
    """Print that a connection was lost, and when the next attempt is (s)."""
    say(f"streamgauge: {why}: trying again in {wait:.1f} s")


def own_token() -> str | None:
    """The token of the environment: ``TOKEN``, or the text of the file named by ``TOKEN_FILE``."""
    if token := os.environ.get(TOKEN):
        return token
    file = os.environ.get(TOKEN_FILE)
    return read_secret(file, TOKEN_FILE) if file else None


def tell_readers(file: Path | None) -> None:
    """Warn if other users can read a file of tokens."""
    if file is not None and file.stat().st_mode & (stat.S_IRGRP | stat.S_IROTH):
        say(f"streamgauge: {file} can be read by other users of this machine: chmod 600 {file}")


def read_tokens(file: Path | None) -> list[str]:
    """The tokens of a file, one per line, and of the environment; MistakeError for an empty file.

    A service started with a token file is meant to be protected; without a token it would be open to everybody.
    """
    lines = read_text(file).split() if file is not None else []
    if file is not None and not lines:
        raise MistakeError(f"{file}: the file has no token: write one per line")
    token = own_token()
    return lines + ([token] if token else [])


def reported(
    path: Path,
    verify: Callable[[Path], Inspection],
    save: Callable[[Path, Path], Saved] | None = None,
    new: Path | None = None,
) -> None:
    """Print the result of a check and, if requested, what was saved and lost; exit with 0 or 1."""
    verification = verify(path)
    for damage in verification.damages:
        typer.echo(f"{path}: damaged: {damage}")
    if verification.more:
        typer.echo(f"{path}: and {verification.more:,} more")
    typer.echo(f"{path}: {'sound' if verification.whole else 'damaged, still sound'}: {verification.remains}")
    if new is not None and save is not None:
        saved = save(path, new)
        typer.echo(f"{new}: {saved.kept}")
        for loss in saved.losses:
            typer.echo(f"{new}: lost: {loss}")
    raise typer.Exit(Exit.RIGHT if verification.whole else Exit.WRONG)
