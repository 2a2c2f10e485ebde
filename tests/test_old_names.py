"""Modules that were moved are found by their old names."""

import subprocess
import sys
from importlib import import_module

import pytest

from streamgauge.old_names import MOVED, new_name


@pytest.mark.parametrize("old", [old for old in MOVED if old not in ("bench", "compute")])
def test_the_old_name_gives_the_module_of_the_new_one(old: str):
    sys.modules.pop(f"streamgauge.{old}", None)
    with pytest.warns(DeprecationWarning, match="is now streamgauge"):
        module = import_module(f"streamgauge.{old}")
    assert module is import_module(f"streamgauge.{MOVED[old]}")


def test_what_was_not_moved_keeps_its_name():
    assert new_name("streamgauge.model.run") is None
    assert new_name("elsewhere.wire") is None
    assert new_name("streamgauge.wired") is None


@pytest.mark.server
def test_what_a_documented_line_imports_is_the_same_class():
    program = (
        "from streamgauge.services.fragments.storing import Keep as old\n"
        "from streamgauge.servers.fragments.store import Keep as new\n"
        "import streamgauge.wire.formats\n"
        "assert old is new and streamgauge.wire.formats.stream_formats()\n"
    )
    subprocess.run([sys.executable, "-W", "ignore::DeprecationWarning", "-c", program], check=True)
