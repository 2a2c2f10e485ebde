"""Engines that are programs of their own, for tests of what runs engines."""

import sys
from types import SimpleNamespace

from streamgauge.engines import load
from streamgauge.formats.pipe import PipedSession, Task
from streamgauge.query import print_query

DIES = """
import sys
print('{"ready":true}', flush=True)
sys.stdin.readline()
sys.stdin.readline()
sys.exit("out of luck")
"""
"""A program that ends after its first element, although more may come."""


def command():
    """The live engine as a program of its own."""
    return [sys.executable, "-m", "streamgauge.harness.host", "live"]


def program(command):
    """A program as an engine that takes what live takes."""

    def start(query, chosen, emit):
        return PipedSession(command(), Task(print_query(query, "rspql"), "rspql", chosen), emit)

    return SimpleNamespace(command=command, refuse=load("live").refuse, start=start)


PROGRAM = program(command)
DYING = program(lambda: [sys.executable, "-c", DIES])
