"""An engine that is a program of its own, for tests of what runs engines."""

import sys
from types import SimpleNamespace

from streamgauge.engines import load
from streamgauge.query import print_query
from streamgauge.wire.pipe import start_piped
from streamgauge.wire.task import Task


def command():
    """The live engine as a program of its own."""
    return [sys.executable, "-m", "streamgauge.bench.recording.host", "live"]


def piped(query, chosen, emit):
    return start_piped(command(), Task(print_query(query, "rspql"), "rspql", chosen), emit)


PROGRAM = SimpleNamespace(command=command, refuse=load("live").refuse, start=piped)
