"""The incremental evaluator: a change of the facts gives the exact change of the solutions."""

from streamgauge.incremental.bags import Bag, Delta
from streamgauge.incremental.evaluator import Evaluator, refuse
from streamgauge.incremental.normal import UnsupportedError
from streamgauge.incremental.whole import Contents, Snapshots

__all__ = ["Bag", "Contents", "Delta", "Evaluator", "Snapshots", "UnsupportedError", "refuse"]
