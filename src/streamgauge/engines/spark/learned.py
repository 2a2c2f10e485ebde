"""What the engine has seen of a stream's triples: it compiles queries for it and is told when it is no longer so."""

from collections.abc import Sequence

from pyspark.sql import DataFrame

from streamgauge.model.terms import Term
from streamgauge.spark.profile import Counts, Looked, Profile


class Learned:
    """The datatype of each predicate's objects, ``None`` once there were several, and whether triples repeat often."""

    def __init__(self, counts: Counts) -> None:
        self._counts = counts
        self._kinds: dict[Term, str | None] = {}
        self._often: bool | None = None

    def profile(self, counted: Sequence[int], rows: DataFrame) -> Profile:
        """The profile of rows with so many triples of each predicate; a job looks at what was never seen."""
        present = {name for name, count in zip(self._counts.predicates, counted, strict=True) if count}
        if self._often is None or not present.intersection(self._counts.numeric) <= self._kinds.keys():
            self._look(rows)
        return self._counts.profile(counted, Looked(self._kinds, bool(self._often)))

    def mistaken(self, rows: DataFrame) -> None:
        """Some of these rows were of another datatype: look at them, and do not count on one again."""
        before = dict(self._kinds)
        self._look(rows)
        if self._kinds == before:
            self._kinds = dict.fromkeys(self._kinds)

    def _look(self, rows: DataFrame) -> None:
        found = self._counts.look(rows)
        for name, kind in found.kinds.items():
            self._kinds[name] = kind if self._kinds.get(name, kind) == kind else None
        self._often = self._often or found.often
