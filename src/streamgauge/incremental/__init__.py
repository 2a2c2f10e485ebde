"""The incremental evaluator: a change of the facts gives the exact change of the solutions."""

from streamgauge.incremental.evaluator import Evaluator, refuse
from streamgauge.incremental.operators import Bag, Delta
from streamgauge.incremental.rewrite import UnsupportedError
from streamgauge.incremental.snapshot import SnapshotContents, Snapshots

__all__ = ["Bag", "Delta", "Evaluator", "SnapshotContents", "Snapshots", "UnsupportedError", "refuse"]
