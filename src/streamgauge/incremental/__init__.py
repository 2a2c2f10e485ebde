"""The incremental evaluator: a change of the facts gives the exact change of the solutions."""

from typing import TYPE_CHECKING, Final

from streamgauge.model.lazily import names_of

if TYPE_CHECKING:
    from streamgauge.incremental.evaluator import refuse
    from streamgauge.incremental.operators import Bag, Delta
    from streamgauge.incremental.rewrite import UnsupportedError
    from streamgauge.incremental.snapshot import SnapshotContents, Snapshots

__all__ = ["Bag", "Delta", "SnapshotContents", "Snapshots", "UnsupportedError", "refuse"]

_MODULES: Final = {
    "evaluator": ("refuse",),
    "operators": ("Bag", "Delta"),
    "rewrite": ("UnsupportedError",),
    "snapshot": ("SnapshotContents", "Snapshots"),
}
"""The names of each module, which is loaded when one is first used."""

__getattr__ = names_of(__name__, _MODULES)
