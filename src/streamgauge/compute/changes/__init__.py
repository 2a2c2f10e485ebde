"""The incremental evaluator: a change of the facts gives the exact change of the solutions."""

from streamgauge.compute.changes.bags import Bag, Delta
from streamgauge.compute.changes.evaluator import Evaluator, refuse
from streamgauge.compute.changes.normal import UnsupportedError

__all__ = ["Bag", "Delta", "Evaluator", "UnsupportedError", "refuse"]
