"""The command ``completion``: what makes a shell complete commands, options and names."""

import os
from enum import StrEnum
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, Final

import typer

PROGRAM: Final = "streamgauge"
COMPLETE_VARIABLE: Final = "_STREAMGAUGE_COMPLETE"
"""The environment variable by which a shell asks for completions."""


class Shell(StrEnum):
    """The shells whose completion is written here."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


def register(app: typer.Typer) -> None:
    """Add this group's command."""
    app.command("completion")(completion)


def answer_shells() -> None:
    """Make the program answer a shell that asks for completions, as ``COMPLETE_VARIABLE`` says it does."""
    _typer().completion_init()


def _shell() -> Shell:
    name = Path(os.environ.get("SHELL", "")).name
    try:
        return Shell(name)
    except ValueError:
        message = f"name the shell: {', '.join(Shell)} (the variable SHELL names {name or 'none'})"
        raise typer.BadParameter(message, param_hint="SHELL") from None


def completion(
    shell: Annotated[
        Shell | None, typer.Argument(case_sensitive=False, help="bash, zsh or fish; the one that SHELL names.")
    ] = None,
    install: Annotated[bool, typer.Option("--install", help="Add it to the shell's own files.")] = False,
) -> None:
    """Print what makes a shell complete commands, options and names; or put it where the shell reads it."""
    wanted = shell or _shell()
    settings = {"prog_name": PROGRAM, "complete_var": COMPLETE_VARIABLE, "shell": wanted.value}
    if not install:
        typer.echo(_typer().get_completion_script(**settings))
        return
    _, file = _typer().install(**settings)
    typer.echo(f"{file}: written; a new {wanted.value} completes {PROGRAM}")


def _typer() -> Any:
    """Typer's module of completion, whose functions are typed as no part of its interface."""
    return import_module("typer.completion")
