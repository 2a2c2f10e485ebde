"""The list of commands: complete, in parts, shown without importing a command."""

import subprocess
import sys
from importlib import import_module
from pkgutil import iter_modules

import pytest
import typer

from streamgauge import cli
from streamgauge.cli.catalogue import COMMANDS, CataloguePart
from streamgauge.cli.main import load

OWN = {
    "streamgauge",
    "streamgauge.__main__",
    "streamgauge.cli",
    "streamgauge.cli.catalogue",
    "streamgauge.cli.completion",
    "streamgauge.cli.main",
    "streamgauge.cli.streams",
    "streamgauge.model",
    "streamgauge.model.controls",
    "streamgauge.model.phrases",
    "streamgauge.model.mistake",
}
"""What help needs of the package."""
LIBRARIES = {"typer", "shellingham", "annotated_doc", "typing_extensions", "click", "colorama"}
HEAVY = {"altair", "jinja2", "pandas", "pydantic", "pyspark", "rdflib", "starlette", "uvicorn", "vl_convert"}
_SAY = """
import sys
before = set(sys.modules)
from streamgauge.cli.main import main
try:
    main()
finally:
    print(*sorted(set(sys.modules) - before), file=sys.stderr)
"""


def registered():
    """The commands that each module registers."""
    results = {}
    for module in iter_modules(cli.__path__):
        given = import_module(f"{cli.__name__}.{module.name}")
        if hasattr(given, "register"):
            app = typer.Typer()
            app.callback()(lambda: None)
            given.register(app)
            results |= dict.fromkeys(typer.main.get_command(app).commands, module.name)  # type: ignore[attr-defined]
    return results


def test_every_registered_command_is_listed_with_its_module():
    assert registered() == {name: entry.module for name, entry in COMMANDS.items()}


def test_parts_come_in_order_and_are_not_split():
    given = [entry.part for entry in COMMANDS.values()]
    assert given == sorted(given, key=list(CataloguePart).index)
    assert set(given) == set(CataloguePart)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_is_what_its_module_registers(name):
    assert load(name).name == name


@pytest.mark.parametrize("words", [("--help",), ("-h",), ()])
def test_help_lists_the_parts_and_their_commands(command, words):
    code, out, err = command(*words)
    assert code == (0 if words else 2)
    lines = (out + err).splitlines()
    positions = [lines.index(f"{part.value}:") for part in CataloguePart]
    assert positions == sorted(positions)
    for name, entry in COMMANDS.items():
        assert any(line.split() == [name, *entry.about.split()] for line in lines), name
    assert all(len(line) <= 80 for line in lines)


@pytest.mark.parametrize("word", ["CHECK", "Check"])
def test_names_are_found_in_any_case(command, word):
    assert "Judge a recorded run" in command(word, "-h").out


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("qurey",), "no command 'qurey': did you mean query?"),
        (("broker", "serv"), "no command 'serv': did you mean serve?"),
        (("zzz",), "no command 'zzz': there are query, watch"),
    ],
)
def test_a_name_that_is_none_is_answered_with_those_like_it(command, words, expected):
    code, _, err = command(*words)
    assert code == 2
    assert expected in err


def imported(*words):
    """Modules that the command line imports for these words."""
    done = subprocess.run([sys.executable, "-c", _SAY, *words], capture_output=True, text=True, check=False)
    return set(done.stderr.splitlines()[-1].split())


@pytest.mark.server
@pytest.mark.parametrize("word", ["--help", "--version"])
def test_help_and_version_import_no_command(word):
    result = imported(word)
    assert {name for name in result if name.startswith("streamgauge")} <= OWN
    outside = {name.partition(".")[0] for name in result} - set(sys.stdlib_module_names) - {"streamgauge"}
    assert outside <= LIBRARIES


@pytest.mark.server
def test_a_small_stream_is_made_without_what_it_does_not_use(tmp_path):
    result = imported("generate", "weather", "--stations", "2", "--duration", "10s", "--out", tmp_path / "stream")
    assert (tmp_path / "stream").is_dir()
    assert not HEAVY & result - {"pydantic"}  # typer reads values with pydantic
    assert not {name for name in result if name.startswith(("streamgauge.servers", "streamgauge.report"))}


@pytest.mark.server
def test_a_query_is_answered_without_what_tables_and_experiments_need(tmp_path):
    (tmp_path / "q.rq").write_text(
        "SELECT ?s FROM NAMED WINDOW <urn:w> ON <urn:in> [RANGE PT5S STEP PT5S] WHERE { WINDOW <urn:w> { ?s ?p ?o } }"
    )
    (tmp_path / "s.jsonl").write_text(
        '{"stream": "urn:in", "time": 1000, "add": [["<urn:a>", "<urn:b>", "<urn:c>"]]}\n'
    )
    result = imported("query", tmp_path / "q.rq", "--stream", tmp_path / "s.jsonl")
    assert "streamgauge.incremental.evaluator" in result
    assert not {"numpy", "pyarrow", "regex", *HEAVY} & result - {"pydantic"}  # typer reads values with pydantic
    assert not {name for name in result if name.startswith(("streamgauge.oracle", "streamgauge.suites"))}


@pytest.mark.server
def test_clients_start_without_what_tables_and_experiments_need():
    modules = [f"streamgauge.cli.{name}" for name in ("watch", "translate", "subscribers")]
    done = subprocess.run(
        [sys.executable, "-c", f"import sys, {', '.join(modules)}; print(*sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
    )
    results = set(done.stdout.split())
    assert results >= set(modules)
    assert not {"numpy", "pyarrow", *HEAVY} & results
