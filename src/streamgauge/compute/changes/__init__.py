"""The incremental evaluator: a change of the facts gives the exact change of the solutions."""

from streamgauge.compute.changes.bags import Bag, Delta
from streamgauge.compute.changes.evaluator import Evaluator, refuse
from streamgauge.compute.changes.normal import UnsupportedError
from streamgauge.compute.changes.whole import Contents, Snapshots

__all__ = ["Bag", "Contents", "Delta", "Evaluator", "Snapshots", "UnsupportedError", "refuse"]
