"""The plans of live queries, whose operators are counted while their page is open."""

from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock
from typing import Final

from streamgauge.incremental.evaluator import OperatorTree
from streamgauge.incremental.observation import PlanStep, PlanWatch
from streamgauge.servers.queries.limits import TRIPLE_BYTES
from streamgauge.servers.queries.registered import RegisteredQuery

WATCHED_S: Final = 10.0
"""How long operators are counted after the plan was last shown."""


@dataclass(frozen=True, slots=True)
class PlanLine:
    """A step of a plan with its work while watched: CPU time (ms) and share of the total."""

    step: PlanStep
    cpu: float
    share: float

    @property
    def memory(self) -> int | None:
        """The estimated size of the rows that the operator remembers, bytes."""
        kept = self.step.kept
        # A row of as many numbers as the operator has variables, a triple being three.
        return None if kept is None else kept * len(self.step.operator.variables) * TRIPLE_BYTES // 3


@dataclass(frozen=True, slots=True)
class ShownPlan:
    """The plan of a query, watched for ``seconds`` in which its thread computed ``cpu`` ms; ``rest`` is not operators.

    Without lines the query has no operators to show.
    """

    lines: tuple[PlanLine, ...]
    seconds: float
    cpu: float
    rest: float


@dataclass(slots=True)
class _Watched:
    watch: PlanWatch
    tree: OperatorTree
    running: RegisteredQuery
    since: float
    cpu: float
    asked: float


class WatchedPlans:
    """The plans that pages show. Thread-safe; ``steady`` gives seconds that never go back."""

    def __init__(self, steady: Callable[[], float]) -> None:
        self._steady, self._lock = steady, Lock()
        self._watched: dict[str, _Watched] = {}

    def plan(self, running: RegisteredQuery) -> ShownPlan:
        """The plan of a query, which is watched from now on."""
        with self._lock:
            now, tree, watched = self._steady(), running.operator_tree, self._watched.get(running.name)
            # A query that was restarted has another tree, whose counts begin anew.
            if tree is not None and (watched is None or watched.tree is not tree):
                if watched is not None:
                    watched.watch.stop()
                watched = _Watched(PlanWatch(tree), tree, running, now, running.worker.cpu, now)
                self._watched[running.name] = watched
                watched.watch.start()
            if watched is None:
                return ShownPlan((), 0.0, 0.0, 0.0)
            watched.asked = now
            return _shown(watched, now)

    def leave(self, name: str) -> None:
        """Stop watching a query."""
        with self._lock:
            if (watched := self._watched.pop(name, None)) is not None:
                watched.watch.stop()

    def expire(self) -> None:
        """Stop watching queries whose pages have not been requested lately."""
        now = self._steady()
        for name in [name for name, watched in list(self._watched.items()) if now - watched.asked > WATCHED_S]:
            self.leave(name)


def _shown(watched: _Watched, now: float) -> ShownPlan:
    own = [0.0 if step.shared else step.counts.cpu / 1e6 for step in watched.watch.steps]
    # The clock of the thread is read less often than those of operators, and may lag behind their sum.
    total = max(1000 * (watched.running.worker.cpu - watched.cpu), sum(own))
    lines = (
        PlanLine(step, cpu, cpu / total if total else 0.0) for step, cpu in zip(watched.watch.steps, own, strict=True)
    )
    return ShownPlan(tuple(lines), now - watched.since, total, total - sum(own))
