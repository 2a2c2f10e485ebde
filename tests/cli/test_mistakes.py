"""Mistakes of newcomers, as data in mistakes.toml: each has its sentence and exit code, and none is a fault."""

import shlex
import socket
import tomllib
from pathlib import Path

import pytest
import typer

from streamgauge.cli.catalogue import COMMANDS
from tests.cli.test_help import LEAVES

DATA = tomllib.loads((Path(__file__).parent / "mistakes.toml").read_text())
MISTAKES = DATA["mistake"]
FOREIGN = (
    "Traceback",
    "[Errno",
    "Input should be",
    "Field required",
    "validation error",
    "errors.pydantic.dev",
    "Error(",
)
"""What nobody is to read: faults, codes of the system, sentences of libraries."""


def marked(mistake):
    """A parameter; what starts a program, listens, finds a port taken or waits is marked so."""
    marks = [pytest.mark.server] if mistake.get("starts") or "{port}" in mistake["words"] else []
    if mistake.get("waits"):
        marks.append(pytest.mark.slow)
    return pytest.param(mistake, id=mistake["what"], marks=marks)


@pytest.fixture
def taken():
    """A port at which another program listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def lay_out(folder, mistake):
    """The files that there are, those of the mistake among them."""
    files = DATA["files"] | mistake.get("files", {})
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    for key, change in CHANGES.items():
        for name in mistake.get(key, ()):
            original = next(text for other, text in files.items() if Path(other).suffix == Path(name).suffix)
            (folder / name).write_bytes(change(original))


CHANGES = {
    "utf16": lambda text: text.encode("utf-16"),
    "bom": lambda text: text.encode("utf-8-sig"),
    "crlf": lambda text: text.replace("\n", "\r\n").encode(),
}
"""Files like the first of the same ending, as editors of Windows write them."""


@pytest.mark.parametrize("mistake", [marked(mistake) for mistake in MISTAKES])
def test_a_mistake_is_answered(mistake, request, tmp_path, monkeypatch, command):
    lay_out(tmp_path, mistake)
    monkeypatch.chdir(tmp_path)
    for name, value in mistake.get("env", {}).items():
        monkeypatch.setenv(name, value)
    port = str(request.getfixturevalue("taken")) if "{port}" in mistake["words"] else ""
    code, out, err = command(*(word.replace("{port}", port) for word in shlex.split(mistake["words"])))
    said = " ".join(f"{err} {out}".split())
    assert code == mistake.get("code", 2), said
    for words in mistake["says"]:
        assert words.replace("{port}", port) in said
    ours = said.partition("its last words: ")[0]  # what a user's own program said is told as it is
    assert not [words for words in FOREIGN if words in ours]


def test_there_are_mistakes_of_every_kind():
    assert len(MISTAKES) >= 60
    assert len({mistake["what"] for mistake in MISTAKES}) == len(MISTAKES)
    named = {word for mistake in MISTAKES for word in mistake["words"].split()[:1]}
    harmless = {"demo", "doctor", "engines", "workloads"}
    assert COMMANDS.keys() - harmless <= named


def test_every_command_refuses_a_master_of_no_known_form_before_it_works():
    masters = {words: param for words, leaf in LEAVES.items() for param in leaf.params if param.name == "master"}
    assert len(masters) > 8
    for words, param in masters.items():
        with pytest.raises(typer.BadParameter, match="'sparky://x' is not a Spark master: write local"):
            param.process_value(typer.Context(LEAVES[words]), "sparky://x")
        for master in ("local", "local[*]", "local[2,3]", "yarn", "spark://a:7077,b:7077", "k8s://https://c", "sc://d"):
            assert param.process_value(typer.Context(LEAVES[words]), master) == master
