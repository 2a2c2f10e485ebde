"""Which elements of a batch came too late: element by element by the lateness bound, however batches fall."""

import numpy as np

from streamgauge.engines.spark.arrived import Heads, Numbers
from streamgauge.engines.spark.closes import Closes
from streamgauge.engines.spark.state import State
from streamgauge.semantics.refusal import OutOfOrderError

_EARLY = -(2**62)


def surely_in_time(first: int, last: int, state: State, closes: Closes) -> bool:
    """Whether no element of a batch that spans these times (ms) can be late; never sure without a lateness bound."""
    lateness = closes.semantics.lateness
    if lateness is None:
        return False
    greatest = max(last, state.greatest if state.greatest is not None else last)
    return bool(first >= _frontier(np.array([greatest - lateness]), state, closes)[0])


def late(heads: Heads, state: State, closes: Closes) -> list[int]:
    """The sequence numbers of the late elements; OutOfOrderError for disorder without a lateness bound."""
    times = heads.time
    before = np.maximum.accumulate(np.concatenate([[_EARLY if state.greatest is None else state.greatest], times]))[:-1]
    lateness = closes.semantics.lateness
    if lateness is None:
        _refuse_disorder(heads, before)
        return []
    found = (times < before) & (times < _frontier(before - lateness, state, closes))
    return [int(sequence) for sequence in heads.sequence[found]]


def _refuse_disorder(heads: Heads, before: Numbers) -> None:
    back = np.flatnonzero(heads.time < before)
    if len(back):
        at = back[0]
        raise OutOfOrderError(
            f"element {heads.sequence[at]} goes back from {before[at]} to {heads.time[at]} ms: sort the stream or "
            "declare a lateness bound (a watermark)"
        )


def _frontier(watermarks: Numbers, state: State, closes: Closes) -> Numbers:
    """The times (ms) below which nothing may come any more when the watermark is at these."""
    closed = 0 if closes.half_open else 1
    limits = watermarks - closed if state.passed is None else np.maximum(watermarks - closed, state.passed)
    found = np.full(len(watermarks), _EARLY)
    for first, step in closes.steps():
        passed = first + (limits - first) // step * step
        found = np.maximum(found, np.where(limits >= first, passed + closed, _EARLY))
    return found
