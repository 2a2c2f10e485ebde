"""The command ``completion``: scripts that make a shell complete commands, options and names."""

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
    """Shells for which completion can be installed."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


def register(app: typer.Typer) -> None:
    """Add this group's command."""
    app.command("completion")(completion)


def answer_shells() -> None:
    """Answer a shell's request for completions, made by ``COMPLETE_VARIABLE``."""
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
        Shell | None, typer.Argument(case_sensitive=False, help="bash, zsh or fish (default: by the variable SHELL).")
    ] = None,
    install: Annotated[bool, typer.Option("--install", help="Install it in the shell's files.")] = False,
) -> None:
    """Print the completion script of a shell, or install it."""
    wanted = shell or _shell()
    settings = {"prog_name": PROGRAM, "complete_var": COMPLETE_VARIABLE, "shell": wanted.value}
    if not install:
        typer.echo(_typer().get_completion_script(**settings))
        return
    _, file = _typer().install(**settings)
    typer.echo(f"{file}: written; a new {wanted.value} completes {PROGRAM}")


def _typer() -> Any:
    """Typer's completion module, whose functions are not part of its typed interface."""
    return import_module("typer.completion")
