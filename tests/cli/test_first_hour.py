"""The first hour's commands (benchmarks/first_hour.py) can be typed, and those that are quick end well."""

import shlex

import pytest
from benchmarks.first_hour import SELF, WAITS, waited

from tests.cli.test_help import context

TYPED = [command for wait in WAITS for command in wait.commands if command.startswith(SELF) and "--help" not in command]
QUICK = [wait for wait in WAITS if wait.cpu or wait.serves]


@pytest.mark.parametrize("command", TYPED)
def test_a_command_can_be_typed(command):
    context(shlex.split(command.removeprefix(SELF).replace("PORT", "8765")))


@pytest.mark.server
@pytest.mark.parametrize("wait", QUICK, ids=lambda wait: wait.name)
def test_what_is_waited_for_ends_well(wait, tmp_path):
    result = waited(wait, tmp_path)
    assert result.ended_well
    assert result.cpu > 0
