"""The incremental evaluator: a change of the facts gives the exact change of the solutions."""

from typing import TYPE_CHECKING, Final

from streamgauge.model.lazily import names_of

if TYPE_CHECKING:
    from streamgauge.incremental.evaluator import Evaluator, refuse
    from streamgauge.incremental.operators import Bag, Delta
    from streamgauge.incremental.rewrite import UnsupportedError
    from streamgauge.incremental.snapshot import SnapshotContents, Snapshots

__all__ = ["Bag", "Delta", "Evaluator", "SnapshotContents", "Snapshots", "UnsupportedError", "refuse"]

_HOMES: Final = {
    "Bag": "operators",
    "Delta": "operators",
    "Evaluator": "evaluator",
    "SnapshotContents": "snapshot",
    "Snapshots": "snapshot",
    "UnsupportedError": "rewrite",
    "refuse": "evaluator",
}
"""The module of each name, which is loaded when first used."""

__getattr__ = names_of(__name__, _HOMES)
