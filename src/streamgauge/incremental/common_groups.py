"""Aggregations that several queries of a session have in common, each kept once.

A hundred queries with the same pattern and aggregates, of which each has another HAVING, take in a triple once; each
query filters the rows that changed. The queries have the same windows and the same static data.
"""

from dataclasses import dataclass, field

from streamgauge.incremental.aggregates import Grouped
from streamgauge.incremental.operators import Pull, Shared, Tap
from streamgauge.model import algebra as al


class CommonGroup(Shared):
    """An aggregation with a reader for each query; a query that comes later reads all rows that there are."""

    def __init__(self, grouped: Grouped, pull: Pull) -> None:
        super().__init__(grouped, pull)
        self.grouped = grouped

    def tap(self) -> Tap:
        """One more reader."""
        made = super().tap()
        made.pending = dict.fromkeys(self.grouped.rows, 1)
        return made


@dataclass
class CommonGroups:
    """The aggregations by their normal patterns; ``pull`` is that of all queries."""

    pull: Pull
    known: dict[al.Group, CommonGroup] = field(default_factory=dict)
