"""Which evaluator answers a query: changes as they come, or contents looked at whole."""

from typing import Final, Protocol

from streamgauge.compute.changes.bags import Bag, Delta
from streamgauge.compute.changes.evaluator import Evaluator
from streamgauge.compute.changes.whole import Snapshots
from streamgauge.compute.drivers.instants import closing
from streamgauge.model.query import ContinuousQuery
from streamgauge.model.semantics import Semantics
from streamgauge.query.stamps import uses_timestamp

OVERLAP: Final = 2
"""How many looks may see one triple for it to be worth looking at contents whole."""


class Answering(Protocol):
    """The answer of a query over contents that move."""

    variables: tuple[str, ...]

    def settle(self) -> Delta:
        """The change of the answer since it was last asked for."""
        ...

    def answer(self) -> Bag:
        """The answer now; do not change it."""
        ...

    def solutions(self) -> Bag:
        """The answer when it was last asked for; do not change it."""
        ...


def answering(query: ContinuousQuery, semantics: Semantics) -> Evaluator | Snapshots:
    """The evaluator for a query under a semantics; ValueError for what it does not do."""
    names = [f"<{each.name}>" for each in query.windows if each.name is not None]
    if looks_rarely(query, semantics):
        return Snapshots(query.form, semantics.empty_aggregate, names)
    return Evaluator(query.form, query.static, semantics.empty_aggregate, names)


def looks_rarely(query: ContinuousQuery, semantics: Semantics) -> bool:
    """Whether only closes (or periods) are looked at, few of which see the same triple, and nothing else is to join."""
    if query.static or uses_timestamp(query.form) or any(each.window.kind != "time" for each in query.windows):
        return False
    if closing(semantics):
        step = min(each.window.slide for each in query.windows)
    elif semantics.period is not None:
        step = semantics.period
    else:
        return False
    return max(each.window.size for each in query.windows) <= OVERLAP * step
