"""Help: an example of each command that can be typed, options of one name, flags without values, 80 columns."""

import shlex

import pytest
import typer

from streamgauge.cli.catalogue import COMMANDS, EXAMPLES
from streamgauge.cli.main import app, load


def leaves():
    """Every command that is not a group, by its words."""
    for name in COMMANDS:
        command = load(name)
        for inner in getattr(command, "commands", {}):
            yield f"{name} {inner}", command.commands[inner]
        if getattr(command, "invoke_without_command", True):
            yield name, command


LEAVES = dict(leaves())
GIVEN = [(words, example) for words, examples in EXAMPLES.items() for example in examples]


def context(words):
    """What a command makes of these words, before it runs."""
    root = typer.main.get_command(app)
    above = root.make_context("streamgauge", ["x"])
    rest = words
    while rest and hasattr(above.command, "resolve_command"):
        name, command, rest = above.command.resolve_command(above, rest)
        above = command.make_context(name, list(rest), parent=above)
        rest = [*getattr(above, "_protected_args", ()), *above.args]
    return above


def test_every_command_has_an_example():
    assert EXAMPLES.keys() == LEAVES.keys()


@pytest.mark.parametrize(("words", "example"), GIVEN)
def test_an_example_can_be_typed(words, example):
    typed = shlex.split(example.partition(" >>")[0])
    assert typed[: len(words.split())] == words.split()
    assert context(typed).command.name == words.split()[-1]


@pytest.mark.parametrize("words", LEAVES)
@pytest.mark.parametrize("option", ["-h", "--help"])
def test_help_fits_80_columns_and_ends_with_the_examples(command, words, option):
    code, out, _ = command(*words.split(), option)
    assert code == 0
    lines = out.rstrip().splitlines()
    assert lines[-len(EXAMPLES[words]) :] == [f"  streamgauge {item}" for item in EXAMPLES[words]]
    assert max(map(len, lines)) <= 80
    assert lines[0].startswith(f"Usage: streamgauge {words} [OPTIONS]")
    assert "<bool>" not in out


def test_usage_says_what_need_not_be_given(command):
    assert "streamgauge broker serve [OPTIONS] [DATA...]\n" in command("broker", "serve", "-h").out
    assert "streamgauge watch [OPTIONS] QUERY URL...\n" in command("watch", "-h").out


ONE_NAME = {
    "Parameters of queries": ({"--set"}, {"--define", "--parameter"}),
    "semantics": ({"--semantics"}, {"--profile"}),
    "lateness": ({"--lateness"}, {"--watermark"}),
    "how much": ({"--limit"}, {"--count", "--max"}),
    "JSON": ({"--json"}, {"--as-json"}),
}


@pytest.mark.parametrize("thing", ONE_NAME)
def test_a_thing_has_one_name_in_every_command(thing):
    wanted, others = ONE_NAME[thing]
    results = {name for command in LEAVES.values() for parameter in command.params for name in parameter.opts}
    assert wanted <= results
    assert not others & results
