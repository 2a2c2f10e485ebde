"""Fitting slips: which reports a faulty engine said right, and where it slipped, so that every answer is explained."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from streamgauge.oracle.diagnosis.models import Carry, Emissions, ExplanationPlace, Said, Slip, Taking

State: TypeAlias = tuple[int, int, Carry]
"""(reports said, answers explained, what an emission carried over)."""


@dataclass(frozen=True, slots=True)
class ExplanationFit:
    """An explanation: the reports told, the places of each slip, how often something swayed, the states passed.

    ``choices`` counts the ways in which something might have swayed, over all reports.
    """

    told: Sequence[Said]
    slipped: dict[Slip, list[ExplanationPlace]]
    swayed: int
    path: tuple[State, ...]
    choices: int = 0


@dataclass(frozen=True, slots=True)
class FittingTask:
    """The task of an explanation: reports told, answers recorded, and which slips may happen.

    Reports later than ``open_end`` (ms) may be missing at the end: the recording does not say how far time came.
    """

    told: Sequence[Said]
    recorded: Taking
    slips: Sequence[Slip] = ()
    open_end: int | None = None
    emissions: Emissions | None = None
    start: Carry = None
    choices: int = 0


@dataclass(frozen=True, slots=True)
class _Step:
    """How a state was reached: the cost so far, from where, by which slip at which place."""

    cost: int
    back: State | None
    slip: Slip | None = None
    place: ExplanationPlace | None = None


_Onward: TypeAlias = tuple[State, int, Slip | None, ExplanationPlace | None]


def fit(task: FittingTask) -> ExplanationFit | None:
    """The explanation with fewest slips; ``None`` when the answers do not come out, or only with too many slips."""
    reports = len(task.told)
    most = reports // 2 + sum(reports + task.recorded.count for slip in task.slips if not slip.half)
    layers: list[dict[tuple[int, Carry], _Step]] = [{} for _ in range(reports + 1)]
    layers[0][0, task.start] = _Step(0, None)
    for i in range(reports + 1):
        _advance(task, i, layers, most)
    ends = [
        (step.cost, (i, j, carry))
        for i, layer in enumerate(layers)
        for (j, carry), step in layer.items()
        if j == task.recorded.count and _may_end(task, i)
    ]
    if not ends:
        return None
    _, state = min(ends, key=lambda end: (end[0], -end[1][0]))
    return _claimed(task, _walk(state, layers), layers[state[0]][state[1], state[2]].cost)


def _may_end(task: FittingTask, i: int) -> bool:
    if i == len(task.told):
        return True
    end = task.open_end
    return end is not None and all(said.instant > end for said in task.told[i:])


def _advance(task: FittingTask, i: int, layers: list[dict[tuple[int, Carry], _Step]], most: int) -> None:
    """Follow every state of a layer onward; surplus answers stay in the layer, further along it."""
    pending = sorted(layers[i], key=lambda key: key[0])
    for j, carry in pending:
        here = layers[i][j, carry]
        for state, cost, slip, place in _onward(task, i, j, carry):
            ahead, after, carried = state
            known = layers[ahead].get((after, carried))
            if here.cost + cost > most or (known is not None and known.cost <= here.cost + cost):
                continue
            layers[ahead][after, carried] = _Step(here.cost + cost, (i, j, carry), slip, place)
            if ahead == i and known is None:
                pending.append((after, carried))


def _onward(task: FittingTask, i: int, j: int, carry: Carry) -> Iterator[_Onward]:
    if i == len(task.told):
        yield from _after_the_end(task, j, carry)
        return
    options = task.emissions(i, carry) if task.emissions else ((0, carry, task.told[i]),)
    for cost, carried, said in options:
        if said is None:
            yield (i + 1, j, carried), cost, None, None
            continue
        after = task.recorded.take(said, j)
        if after is not None:
            yield (i + 1, after, carried), cost, None, None
        place = ExplanationPlace(i, j, said, task.told, task.recorded)
        for slip in task.slips:
            for di, dj in slip.moves(place):
                if i + di <= len(task.told) and j + dj <= task.recorded.count:
                    yield (i + di, j + dj, carried if di else carry), cost + 1 if di else 1, slip, place


def _after_the_end(task: FittingTask, j: int, carry: Carry) -> Iterator[_Onward]:
    """Surplus answers after the last report."""
    if not task.told or j >= task.recorded.count:
        return
    end = len(task.told)
    place = ExplanationPlace(end, j, task.told[-1], task.told, task.recorded)
    for slip in task.slips:
        for di, dj in slip.moves(place):
            if di == 0 and j + dj <= task.recorded.count:
                yield (end, j + dj, carry), 1, slip, place


def _walk(state: State, layers: list[dict[tuple[int, Carry], _Step]]) -> list[tuple[State, _Step]]:
    found: list[tuple[State, _Step]] = []
    at: State | None = state
    while at is not None:
        step = layers[at[0]][at[1], at[2]]
        found.append((at, step))
        at = step.back
    return found[::-1]


def _claimed(task: FittingTask, path: list[tuple[State, _Step]], cost: int) -> ExplanationFit | None:
    """The fit, unless something that happens now and then would have happened in half of the reports or more."""
    slipped: dict[Slip, list[ExplanationPlace]] = {}
    for (i, j, _), step in path:
        if step.slip is not None and step.place is not None:
            place = replace(step.place, move=(i - step.place.i, j - step.place.j))
            slipped.setdefault(step.slip, []).append(place)
    swayed = cost - sum(map(len, slipped.values()))
    reports = max(path[-1][0][0], 1)
    often = any(slip.half and 2 * len(places) >= reports for slip, places in slipped.items())
    if often or 2 * swayed >= reports:
        return None
    return ExplanationFit(task.told, slipped, swayed, tuple(state for state, _ in path), task.choices)
