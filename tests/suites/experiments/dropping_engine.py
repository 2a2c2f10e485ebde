"""The engine of dropping.py, as a module that the registry can load; and one that is not there."""

import sys
from pathlib import Path

from streamgauge.engines import EngineUnavailableError


def refuse(query, semantics):
    return None


def command():
    return [sys.executable, str(Path(__file__).parent / "dropping.py")]


class Coarse:
    """The same, right only with a time unit of at least 50 ms."""

    refuse = staticmethod(refuse)

    @staticmethod
    def command():
        return [*command(), "50"]


class Absent:
    """An engine whose program is missing."""

    refuse = staticmethod(refuse)

    @staticmethod
    def command():
        raise EngineUnavailableError("the engine needs a jar: put it somewhere")
