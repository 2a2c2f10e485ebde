"""The operators of a running query as a plan, with their pulls, rows and CPU time while watched.

Watching replaces an operator's ``pull`` by a counting one, so that unwatched queries pay nothing. Joins of windows
that process triples as they arrive are not part of a pull.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from time import thread_time_ns
from typing import Final

from streamgauge.incremental.evaluator import OperatorTree
from streamgauge.incremental.operators import Bag, FilterRows, LeafSource, Operator, Shared, Stateful, Tap
from streamgauge.query import printer

NAMES: Final = {
    "BandJoin": "join by order",
    "Both": "union",
    "Compute": "bind",
    "Constant": "values",
    "FilterRows": "filter",
    "GraphNodes": "nodes of the graph",
    "Grouped": "group",
    "JoinRows": "join",
    "Keyed": "key",
    "LeafSource": "triple patterns",
    "PathSolutions": "path",
    "PerGroup": "optional, minus or exists, per group",
    "PerKey": "optional, minus or exists, per key",
    "PerExtreme": "optional, minus or exists, extreme",
    "PerNeighbour": "optional, minus or exists, nearest",
    "PerRow": "optional, minus or exists, per row",
    "Pick": "project",
    "RankedRows": "order and limit",
    "Reachability": "reachable nodes",
    "Unique": "distinct",
}
"""Display names of operators, by class."""


@dataclass(slots=True)
class OperatorCounts:
    """The work of an operator while watched: pulls, rows of its changes, CPU time without its inputs (ns)."""

    pulls: int = 0
    rows: int = 0
    cpu: int = 0


@dataclass(frozen=True, slots=True)
class PlanStep:
    """An operator in a plan: its depth below the answer, and whether it occurs elsewhere in the plan."""

    operator: Operator
    depth: int
    shared: bool = False
    counts: OperatorCounts = field(default_factory=OperatorCounts)

    @property
    def name(self) -> str:
        """The display name of the operator."""
        return NAMES[type(self.operator).__name__]

    @property
    def detail(self) -> str:
        """The triple patterns, or the condition, as SPARQL; empty for other operators."""
        match self.operator:
            case LeafSource(pattern=pattern) if pattern is not None:
                return " ".join(printer.group(pattern).split()).removeprefix("{ ").removesuffix(" }")
            case FilterRows(condition=condition):
                return printer.expression(condition.expression)
            case _:
                return ""

    @property
    def variables(self) -> tuple[str, ...]:
        """The columns that are variables of the query."""
        return tuple(name for name in self.operator.variables if not name.startswith((".", "_:")))

    @property
    def kept(self) -> int | None:
        """The rows in the operator's state; ``None`` if it has no state, or another thread is changing it."""
        try:
            return self.operator.held if isinstance(self.operator, Stateful) else None
        except RuntimeError:  # a table has changed its size while it was counted
            return None


def inputs(operator: Operator) -> Iterator[Operator]:
    """The inputs of an operator; shared operators are resolved to what they share."""
    # Found by their interface: operators name their inputs differently, and a list would have to be kept up to date.
    for value in vars(operator).values():
        if isinstance(value, Tap | Shared) or (hasattr(value, "pull") and hasattr(value, "variables")):
            yield _source(value)


def _source(reader: "Operator | Shared") -> Operator:
    """The operator behind a reader of a shared one."""
    while isinstance(reader, Tap | Shared):
        reader = reader.shared if isinstance(reader, Tap) else reader.inner
    return reader


def plan_steps(root: Operator) -> list[PlanStep]:
    """A root and the operators below it, in preorder; the inputs of shared operators are listed once."""
    steps: list[PlanStep] = []
    counts: dict[int, OperatorCounts] = {}

    def visit(operator: Operator, depth: int) -> None:
        known = counts.get(id(operator))
        own = counts.setdefault(id(operator), OperatorCounts())
        steps.append(PlanStep(operator, depth, known is not None, own))
        for below in inputs(operator) if known is None else ():
            visit(below, depth + 1)

    visit(_source(root), 0)
    return steps


class PlanWatch:
    """Counts the work of a query's operators from ``start`` to ``stop``; ``clock`` returns CPU time (ns)."""

    def __init__(self, tree: OperatorTree, clock: Callable[[], int] = thread_time_ns) -> None:
        self.steps = plan_steps(tree.root)
        self._tree, self._clock = tree, clock
        self._below: list[int] = []
        self._own: list[tuple[Operator, Callable[[], Bag] | None]] = []

    def start(self) -> None:
        """Start counting the rows of each operator."""
        for step in self.steps:
            if not step.shared:
                attributes = vars(step.operator)
                self._own.append((step.operator, attributes.get("pull")))
                # On the instance, not the class: other queries run operators of the same classes unwatched. An
                # instance attribute may exist already (``LeafSource.pull``) and is then restored by ``stop``.
                attributes["pull"] = partial(self._counted, step.operator.pull, step.counts)
        self._tree.watched = True

    def stop(self) -> None:
        """Stop counting, and restore the operators."""
        self._tree.watched = False
        for operator, own in self._own:
            if own is None:
                del vars(operator)["pull"]
            else:
                vars(operator)["pull"] = own
        self._own.clear()

    def _counted(self, pull: Callable[[], Bag], counts: OperatorCounts) -> Bag:
        """Pull an operator; the CPU time of its inputs is charged to them."""
        begin = self._clock()
        # Pulls are nested. Each level collects the time of its inputs, which is subtracted from its own.
        self._below.append(0)
        change: Bag = {}
        try:
            change = pull()
            return change
        finally:
            spent = self._clock() - begin
            counts.cpu += spent - self._below.pop()
            counts.pulls += 1
            counts.rows += len(change)
            if self._below:
                self._below[-1] += spent
