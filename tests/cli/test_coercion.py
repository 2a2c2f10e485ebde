"""Options are read without Pydantic as Typer reads them with it, and a command that is well called does not load it."""

import inspect
import subprocess
import sys
from enum import Enum
from pathlib import Path
from typing import Annotated

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st
from typer.core import TyperGroup

from streamgauge.cli.catalogue import COMMANDS
from streamgauge.cli.coercion import PlainCoercion
from streamgauge.cli.main import load
from tests.examples import examples


class Colour(Enum):
    """Two choices, one of which is not its name."""

    RED = "red"
    DARK = "dark blue"


def annotated(
    text: str,
    count: int,
    port: Annotated[int, typer.Option(min=-3, max=65_535)],
    share: float,
    ratio: Annotated[float, typer.Option(min=0.0, max=1.5)],
    colour: Colour,
    path: Path,
    kept: Annotated[Path, typer.Option(exists=True)],
    few: Annotated[int, typer.Option(min=0, max=9, clamp=True)],
    texts: Annotated[list[str], typer.Option()],
    numbers: Annotated[list[int], typer.Option()],
    paths: Annotated[list[Path], typer.Option()],
) -> None:
    """A parameter of each kind."""


def parameters():
    app = typer.Typer()
    app.command()(annotated)
    names = inspect.signature(annotated).parameters
    return {param.name: param for param in typer.main.get_command(app).params if param.name in names}


PLAIN, TYPER = parameters(), parameters()
NUMBERS = [
    "0",
    "007",
    "-3",
    "-4",
    "+5",
    "65535",
    "65536",
    "1_0",
    " 1",
    "1.5",
    "1.50",
    "1e1",
    ".5",
    "1.",
    "9" * 30,
    "²",
    "٣",
]
WORDS = ["", "nan", "inf", "red", "RED", "dark blue", "a", ".", "a\0b", "nowhere/at/all", "/", "true"]
VALUES = st.sampled_from([*NUMBERS, *WORDS, *Colour]) | st.text(max_size=4) | st.integers(-5, 70_000) | st.floats(-1, 2)


def read(param, value):
    """The value as it is read, or the message."""
    try:
        return repr(param.get_runtime_param().coerce(value, param=param, ctx=None))
    except typer.BadParameter as error:
        return error.message
    except TypeError as error:
        return repr(error)


@pytest.mark.parametrize("name", PLAIN)
@examples(40, 1000)
@given(data=st.data())
def test_values_are_those_of_typer(name, data):
    value = data.draw(st.none() | (st.lists(VALUES, max_size=3) if PLAIN[name].multiple else VALUES))
    PLAIN[name]._runtime_param = PlainCoercion()
    assert read(PLAIN[name], value) == read(TYPER[name], value)


def test_an_unreadable_path_is_told(tmp_path, monkeypatch):
    file = tmp_path / "secret"
    file.write_text("")
    monkeypatch.setattr("os.access", lambda *_arguments, **_options: False)
    PLAIN["path"]._runtime_param = PlainCoercion()
    assert read(PLAIN["path"], str(file)) == f"path {str(file)!r} is not readable."


def every_parameter():
    def inside(command):
        if isinstance(command, TyperGroup):
            return [param for inner in command.commands.values() for param in inside(inner)]
        return command.params

    return [param for name in COMMANDS for param in inside(load(name))]


def test_every_option_of_a_command_is_read_so():
    assert {type(param._runtime_param) for param in every_parameter()} == {PlainCoercion}


@pytest.mark.server
def test_a_command_loads_no_pydantic():
    code = (
        "import atexit, sys; from streamgauge.cli.main import main; "
        "atexit.register(lambda: print(sorted({'pydantic'} & set(sys.modules)))); main()"
    )
    words = ["engine", "serve", "nosuch", "--port", "0", "--max-seconds", "2.5"]
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=False)
    assert "unknown engine 'nosuch'" in done.stderr
    assert done.stdout == "[]\n"
