"""How the queries of a session are distributed over processes, and the sentence that describes it (docs/live.md)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal, TypeAlias

from streamgauge.formats.batches import Times
from streamgauge.incremental.drivers.frames import clock_of, closing
from streamgauge.incremental.query_forms import RowOrder
from streamgauge.incremental.shards.keys import Route, ShardKey, TripleRoutes, shard_key
from streamgauge.model import algebra as al
from streamgauge.model.query import ContinuousQuery
from streamgauge.model.semantics import R2S, Borders, Counting, Due, Report, Semantics
from streamgauge.query.stamps import reads_time
from streamgauge.query.traversal import constant_predicates, every_pattern
from streamgauge.semantics.refusal import RefusedError

Kind: TypeAlias = Literal["variable", "windows", "queries", "one"]
Asked: TypeAlias = tuple[ContinuousQuery, Semantics]

MAX_SHARDS: Final = 64
"""Maximum number of processes."""

SHARED: Final = 0.5
"""Maximum fraction of patterns whose triples go to all shards for a key to pay off."""


@dataclass(frozen=True, slots=True)
class WindowTurns:
    """Disjoint windows, each processed by one shard; times in ms.

    Window n closes at ``first`` + n ``slide`` after t0, and belongs to shard n modulo their number.
    """

    size: int
    slide: int
    first: int
    borders: Borders

    def closing(self, instant: int, t0: int) -> int:
        """The number of the window that closes at an instant."""
        return (instant - t0 - self.first) // self.slide

    def holding(self, times: Times, t0: int) -> tuple[Times, Times]:
        """The first and last window that contains each time; none if the first is after the last."""
        soonest = 1 if self.borders is Borders.CLOSED_OPEN else 0
        latest = self.size - (self.borders is Borders.OPEN_CLOSED)
        # A worked example: windows of 4 ms each 10 ms from 0 on, so window 0 is [0, 4) and window 1 [10, 14). 3 is in
        # window 0; for 4 and 9 the first window (1) is after the last (0): they are in none.
        since = times - (t0 + self.first)
        return -(-(since + soonest) // self.slide), (since + latest) // self.slide


NONE: Final = TripleRoutes()
"""Routes that drop all triples."""


@dataclass(frozen=True, slots=True)
class ShardingPlan:
    """How queries are distributed over ``shards`` processes; ``sentence`` describes it, and explains a single one.

    ``routes`` route triples by predicate, ``turns`` by time. ``every``: each shard gets all rows, because the
    course of time affects more than due times. ``present``: of an element without matches one triple is sent, because
    reports depend on whether the content is empty.
    """

    kind: Kind
    shards: int
    sentence: str
    routes: TripleRoutes = NONE
    turns: WindowTurns | None = None
    every: bool = False
    present: bool = False


def plan(queries: Sequence[Asked], shards: int) -> ShardingPlan:
    """Plan the distribution of queries over this many processes; RefusedError for an invalid number."""
    if not isinstance(shards, int) or isinstance(shards, bool) or not 1 <= shards <= MAX_SHARDS:
        raise RefusedError(f"shards is {shards!r}: expected a whole number of processes, 1 to {MAX_SHARDS}")
    if shards == 1:
        return ShardingPlan("one", 1, "one process")
    if len(queries) > 1:
        return _of_several(queries, shards)
    return _of_one(*queries[0], shards)


def _of_several(queries: Sequence[Asked], shards: int) -> ShardingPlan:
    bounded = any(semantics.lateness is not None for _, semantics in queries)
    if bounded and len({(query.windows, semantics) for query, semantics in queries}) > 1:
        return _one("the queries have lateness bounds and differ in windows or semantics, so each counts late elements")
    used = min(shards, len(queries))
    return ShardingPlan("queries", used, f"{len(queries)} queries over {used} processes")


def _of_one(query: ContinuousQuery, semantics: Semantics, shards: int) -> ShardingPlan:
    if reason := _by_content(query, semantics):
        return _one(reason)
    plan_ = _chosen(query, semantics, shards)
    every = semantics.lateness is not None or semantics.due is Due.LAST
    return replace(plan_, every=every, present=Report.NON_EMPTY in semantics.report)


def _chosen(query: ContinuousQuery, semantics: Semantics, shards: int) -> ShardingPlan:
    """By a variable of all patterns, else by windows, else by a variable of most patterns."""
    key, no_key = _key(query, semantics)
    if key is not None and not key.shared:
        return _by_variable(key, shards)
    turns, no_turns = _turns(query, semantics)
    if turns is not None:
        sentence = f"{shards} processes take turns at the windows: {no_key or _sharing(key)}"
        return ShardingPlan("windows", shards, sentence, _matched(query), turns)
    if key is None:
        return _one(f"{no_key}, and {no_turns}")
    if key.shared > SHARED:
        return _one(f"{_sharing(key)}, which are most, and {no_turns}")
    return _by_variable(key, shards)


def _one(reason: str) -> ShardingPlan:
    return ShardingPlan("one", 1, f"one process: {reason}")


def _by_variable(key: ShardKey, shards: int) -> ShardingPlan:
    more = f"; triples of {', '.join(key.routes.shared())} go to each" if key.shared else ""
    return ShardingPlan("variable", shards, f"sharded by ?{key.name} over {shards} processes{more}", key.routes)


def _sharing(key: ShardKey | None) -> str:
    return "" if key is None else f"sharded by ?{key.name}, all processes would hold {', '.join(key.routes.shared())}"


def _by_content(query: ContinuousQuery, semantics: Semantics) -> str | None:
    """Why reports depend on whole contents, which no shard has; ``None`` if they do not."""
    if Report.CONTENT_CHANGE in semantics.report:
        return "a report depends on whether the content has changed, and no shard has all of it"
    if not closing(semantics) and clock_of(semantics, 0) is None:
        return "each element may report, and no shard has all of them"
    if any(window.window.kind == "count" for window in query.windows):
        return "a window counts the triples of its stream, and no shard has all of them"
    if reads_time(query.form):
        return "timestamp() asks for the latest of all copies of a triple, NOW() for the instant of a report"
    return None


def _key(query: ContinuousQuery, semantics: Semantics) -> tuple[ShardKey | None, str]:
    """The key of a query, or why it has none."""
    if not isinstance(query.form, al.Select):
        return None, "the rows of all shards make one answer of ASK or CONSTRUCT"
    key = shard_key(query.form)
    if key is None:
        return None, "not all joins, groups, DISTINCT and LIMIT go through one variable"
    r2s = query.r2s or semantics.r2s
    if r2s is R2S.RSTREAM and RowOrder.of(query.form) is not None:
        return None, "the rows of all shards have one order"
    if not key.disjoint and (r2s is not R2S.RSTREAM or semantics.answers is Counting.SET):
        return None, f"?{key.name} is not a column of the answer, whose rows are compared with those of other shards"
    if Report.NON_EMPTY in semantics.report and query.static:
        return None, "static data have answers where the content of a shard is empty, which then does not report"
    if Report.NON_EMPTY in semantics.report and r2s is not R2S.RSTREAM:
        return None, f"{r2s} is the change since the last report, which a content of another shard may make due"
    return key, ""


def _turns(query: ContinuousQuery, semantics: Semantics) -> tuple[WindowTurns | None, str]:
    """The turns at windows, or why shards cannot take turns."""
    windows = {window.window for window in query.windows}
    if not closing(semantics) or len(windows) > 1:
        return None, "reports are not those of one window's closes"
    (window,) = windows
    if window.kind != "time" or window.size > window.slide:
        return None, "windows overlap"
    if (query.r2s or semantics.r2s) is not R2S.RSTREAM:
        return None, "an answer depends on that of the window before"
    first = window.slide if semantics.partial_head else window.size
    return WindowTurns(window.size, window.slide, first, semantics.borders), ""


def _matched(query: ContinuousQuery) -> TripleRoutes:
    """Routes that keep all triples that a pattern may match."""
    blocks = [pattern for pattern in every_pattern(query.form.pattern) if isinstance(pattern, al.BGP)]
    plain = all(isinstance(pattern.predicate, str) for block in blocks for pattern in block.patterns)
    if not plain:
        return TripleRoutes(others=Route.EVERYWHERE)
    return TripleRoutes(dict.fromkeys(constant_predicates(query.form), Route.EVERYWHERE))
