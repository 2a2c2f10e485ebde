"""Every sink of text for people: what a stranger writes into a term steers neither terminal nor direction."""

import ast
import json
import logging
import os
import pty
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
from rich.table import Table
from rich.text import Text

from streamgauge.cli import main
from streamgauge.cli.streams import visible_streams
from streamgauge.cli.terminal import Terminal, telling
from streamgauge.model.controls import visible
from tests.boundaries.text_sinks import HOSTILE, SINKS, TERM

CONTROLS = [chr(code) for code in (*range(9), 11, 12, *range(14, 32), *range(127, 160), 0x61C, 0x200E, 0x200F,
            *range(0x2028, 0x202F), *range(0x2066, 0x206A), 0xD800)]  # fmt: skip


def steering(text: str) -> list[str]:
    """The control characters in a text, as they are written."""
    return sorted({ascii(character) for character in text if character in CONTROLS})


@pytest.mark.parametrize("name", SINKS)
def test_no_sink_passes_a_control_character_on(name):
    text = SINKS[name]()
    assert steering(text) == []
    assert "PWN" in text
    assert r"\u202e" in text.replace(r"\textbackslash{}", "\\")  # as LaTeX writes it


def test_xml_is_well_formed():
    roots = {name: ElementTree.fromstring(SINKS[name]()).tag for name in ("JUnit", "timeline in SVG")}
    assert roots == {"JUnit": "testsuites", "timeline in SVG": "{http://www.w3.org/2000/svg}svg"}


def test_controls_are_as_in_json_and_lines_stay():
    assert visible("a\x1b\tb\nc\r\nd\re\u200dé") == "a\\u001b\tb\nc\r\nd\\u000de\u200dé"
    assert steering("".join(map(visible, CONTROLS))) == []


def _logged() -> None:
    logging.getLogger("tests.boundaries").warning(HOSTILE)


def _told() -> None:
    with telling(Terminal(stderr=True), "run", every=0.0) as tell:
        tell(HOSTILE)


def _table() -> None:
    table = Table(title=HOSTILE)
    table.add_column(HOSTILE)
    table.add_row(HOSTILE)
    Terminal().print(table)


PRINTS = {
    "print": lambda: print(HOSTILE),
    "standard error": lambda: sys.stderr.write(HOSTILE),
    "writelines": lambda: sys.stdout.writelines([HOSTILE]),
    "logging": _logged,
    "progress": _told,
    "table": _table,
    "markup": lambda: Terminal().print(f"[link={HOSTILE}]PWN[/link] {HOSTILE}"),
    "error": lambda: main._say(HOSTILE),
}


@pytest.mark.parametrize("name", PRINTS)
def test_whatever_prints_while_a_command_runs_is_visible(name, capfd, monkeypatch):
    streams = [open(descriptor, "w", encoding="utf-8", closefd=False) for descriptor in (1, 2)]  # noqa: SIM115
    monkeypatch.setattr(sys, "stdout", streams[0])
    monkeypatch.setattr(sys, "stderr", streams[1])
    handler = logging.StreamHandler()
    with visible_streams():
        handler.setStream(sys.stderr)
        logging.getLogger("tests.boundaries").addHandler(handler)
        PRINTS[name]()
        logging.getLogger("tests.boundaries").removeHandler(handler)
    out, err = capfd.readouterr()
    assert steering(out + err) == []
    assert "PWN" in out + err


def test_a_narrow_table_loses_nothing_of_a_hostile_cell(capsys):
    table = Table()
    table.add_column("term", overflow="fold")
    table.add_row(Text(HOSTILE))
    Terminal(width=20).print(table)
    shown = "".join(re.findall("[^ \\s│┃]", capsys.readouterr().out))
    assert r"x\u001b]0;PWN\u001b[2J\u009b31mred\u202eevil\u2066\u2028\u0085FAKE" in shown


def _on_a_terminal(words: list[str], cwd: Path) -> str:
    """What a command writes to a terminal."""
    ours, theirs = pty.openpty()
    code = "from streamgauge.cli.main import main; main()"
    environment = {**os.environ, "TERM": "dumb", "NO_COLOR": "1"}
    try:
        process = subprocess.Popen(
            [sys.executable, "-c", code, *words], cwd=cwd, stdin=theirs, stdout=theirs, stderr=theirs, env=environment
        )
        os.close(theirs)
        written = b""
        while block := _read(ours):
            written += block
        process.wait()
    finally:
        os.close(ours)
    return written.decode()


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 65536)
    except OSError:  # the program has ended
        return b""


ELEMENT = json.dumps({"t": 1000, "stream": "urn:s", "add": f"<urn:a> <urn:p> {TERM} ."}, ensure_ascii=False)
LATER = json.dumps({"t": 12000, "stream": "urn:s", "add": "<urn:a> <urn:q> <urn:b> ."})
QUERY = (
    "SELECT * FROM NAMED WINDOW <urn:w> ON <urn:s> [RANGE PT10S STEP PT10S] WHERE { WINDOW <urn:w> { ?a <urn:p> ?s } }"
)


@pytest.mark.server
@pytest.mark.parametrize("form", ["table", "jsonl", "csv"])
def test_answers_on_a_terminal_are_visible(tmp_path, form):
    (tmp_path / "in.jsonl").write_text(f"{ELEMENT}\n{LATER}\n", "utf-8")
    (tmp_path / "in.rq").write_text(QUERY)
    shown = _on_a_terminal(["query", "in.rq", "--stream", "urn:s=in.jsonl", "--format", form], tmp_path)
    assert steering(shown.replace("\r\n", "\n")) == []
    assert "PWN" in shown


@pytest.mark.parametrize(
    "words", [["query", f"no{HOSTILE}", "--stream", "none.jsonl"], [f"no{HOSTILE}"], ["query", f"--no{HOSTILE}"]]
)
def test_errors_are_visible(command, words):
    output = command(*words)
    assert steering(output.out + output.err) == []
    assert "PWN" in output.err


def test_a_format_in_a_pipe_stays_as_it_is(command, tmp_path):
    (tmp_path / "in.jsonl").write_text(f"{ELEMENT}\n{LATER}\n", "utf-8")
    (tmp_path / "in.rq").write_text(QUERY)
    output = command("query", tmp_path / "in.rq", "--stream", f"urn:s={tmp_path / 'in.jsonl'}", "--format", "csv")
    assert "\x9b31mred\u202eevil" in output.out


def unguarded(text: str) -> list[int]:
    """The lines on which a template is rendered, but not passed on through ``visible``."""
    if "get_template(" not in text:
        return []  # to parse all of the package takes seconds
    tree = ast.parse(text)
    guarded = {
        id(argument)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "visible"
        for argument in node.args
    }
    return [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and "get_template(" in ast.unparse(node.func) and node.func.attr == "render"
        if id(node) not in guarded
    ]


def test_every_template_is_rendered_visibly():
    assert {str(file): lines for file in _source() if (lines := unguarded(file.read_text("utf-8")))} == {}


def test_a_template_that_is_not_is_found():
    assert unguarded("def page(): return env.get_template('a.html').render(x=term)") == [1]
    assert unguarded("def page(): return visible(env.get_template('a.html').render(x=term))") == []


def _source() -> list[Path]:
    return sorted(Path(main.__file__).parents[1].rglob("*.py"))


WAYS_AROUND = {
    "Console(": {"cli/terminal.py"},
    "sys.__stdout__": set(),
    "sys.__stderr__": set(),
    "os.write(1": set(),
    "os.write(2": {"servers/durability.py"},
    "sys.stdout.buffer": {"cli/streams.py", "harness/host.py", "incremental/shards/worker.py"},
    "sys.stderr.buffer": set(),
    "sys.stdout.fileno()": {"cli/terminal.py", "sources/standard.py"},
    "sys.stderr.fileno()": set(),
}
"""How text could get past the visible streams, and the modules that may: bytes in a format, a handler of signals."""


def _around(sources: dict[str, str]) -> list[str]:
    return [
        f"{place}: {way}"
        for place, text in sources.items()
        for way, allowed in WAYS_AROUND.items()
        if way in text.replace("class Terminal(Console)", "") and place not in allowed
    ]


def test_no_module_prints_past_the_visible_streams():
    root = Path(main.__file__).parents[1]
    assert _around({str(file.relative_to(root)): file.read_text("utf-8") for file in _source()}) == []


def test_a_module_that_does_is_found():
    text = "from rich.console import Console\nConsole().print(term)"
    assert _around({"cli/new.py": text}) == ["cli/new.py: Console("]
