"""Old names of options go on, and are told of."""

import json

import pytest

from streamgauge.cli.catalogue import RENAMED, renewed
from streamgauge.cli.main import load
from tests.cli.test_bad_input import here  # noqa: F401


@pytest.mark.parametrize(("command", "old"), [(name, old) for name, table in RENAMED.items() for old in table])
def test_the_name_of_today_is_an_option_and_the_old_one_is_none(command, old):
    names = {name for parameter in load(command).params for name in parameter.opts}
    assert RENAMED[command][old] in names
    assert old not in names


@pytest.mark.parametrize(
    ("words", "now"),
    [
        (["--as", "csparql"], ["--semantics", "csparql"]),
        (["--as=csparql", "--define=A=1"], ["--semantics=csparql", "--set=A=1"]),
        (["-D", "A=1", "--semantics", "x"], ["-D", "A=1", "--semantics", "x"]),
        (["--", "--as", "x"], ["--", "--as", "x"]),
    ],
)
def test_words_are_renewed(words, now, capsys):
    assert list(renewed("expect", words)) == now
    notes = capsys.readouterr().err.splitlines()
    assert len(notes) == sum(a != b for a, b in zip(words, now, strict=True))
    assert all(note.endswith("the old name ends with the next version") for note in notes)


def test_a_command_without_old_names_keeps_its_words(capsys):
    assert list(renewed("subscribe", ["--as", "me"])) == ["--as", "me"]
    assert capsys.readouterr().err == ""


def test_an_old_name_does_what_the_new_one_does(here, command, monkeypatch):  # noqa: F811
    monkeypatch.chdir(here)
    words = ("expect", "query.rq", "--stream", "table", "--json")
    old, new = command(*words, "--as", "rspql"), command(*words, "--semantics", "rspql")
    assert (old.code, json.loads(old.out)) == (0, json.loads(new.out))
    assert "note: --as is called --semantics" in old.err
    assert "is called" not in new.err
