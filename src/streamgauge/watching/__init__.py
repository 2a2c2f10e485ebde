"""Continuous queries from Python: iterate over answers as they arrive (docs/watching.md)."""

from collections import deque
from collections.abc import AsyncIterable, Callable, Iterable, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeGuard, Unpack, cast, overload

from streamgauge.engines import load, option_names, sharding_of
from streamgauge.formats.pipe import PipeError
from streamgauge.formats.streams import Reading, one_by_one
from streamgauge.model.answer import Answer
from streamgauge.model.engine import Emit
from streamgauge.model.own_data import OWN_DATA_NAMES
from streamgauge.model.semantics import Semantics
from streamgauge.servers.queries.sessions import EngineSession, SessionQuery, as_declared, moved, resumed
from streamgauge.sources.decoders import OwnDataOptions
from streamgauge.sources.named import by_time
from streamgauge.watching.arrivals import MergedStreams
from streamgauge.watching.inputs import (
    Query,
    Static,
    Stream,
    StreamFeed,
    Terms,
    Understood,
    WatchError,
    open_feeds,
    understand,
)
from streamgauge.watching.watches import AsyncWatch, End, Passing, Watch, wall_clock

if TYPE_CHECKING:  # numpy and SQLite are loaded for a watch with a state only
    from streamgauge.formats.batches import Taken
    from streamgauge.watching.durable import DurableWatch, WatchState

BEAT_S = 0.1
"""Interval (s) of checking the wall clock while no element arrives."""


class Options(OwnDataOptions, total=False):
    """The options of ``watch`` and ``awatch``."""

    semantics: Semantics | str | None
    """A Semantics value or a profile's name; default: the profile of the query's dialect."""
    static: Static
    """Background data: an RDF file or triples."""
    engine: str
    """The engine's name; default ``live``."""
    lateness: int | str | None
    """The maximum lateness of elements: ms, or text such as ``2s``."""
    t0: int | str | None
    """The start of the first window: ms, text such as ``30s``, or a date; default: before the first element."""
    advance: Literal["wall"] | Callable[[], int] | None
    """``wall``, or a clock in ms: time passes without elements."""
    end: End
    """How far time advances when the streams end."""
    merge: Literal["time", "arrival"] | None
    """How several streams are merged: by time, unless one of them is live."""
    state: str | Path | None
    """The folder of a durable watch, which another process can resume."""
    shards: int
    """The number of processes over which ``live`` distributes queries whose answers allow it; default 1."""


@overload
def watch(query: Mapping[str, Query], *streams: Stream, **options: Unpack[Options]) -> Watch[tuple[str, Answer]]: ...
@overload
def watch(query: Query, *streams: Stream, **options: Unpack[Options]) -> Watch[Answer]: ...
def watch(query: Query | Mapping[str, Query], *streams: Stream, **options: Unpack[Options]) -> Watch[Any]:
    """The answers to a query on streams, as they come; to several by name, pairs of name and answer.

    Options (``Options``): ``semantics``, ``static``, ``engine``, ``lateness``, ``t0``, ``advance``, ``end``, ``merge``,
    ``shards``, ``state``, ``reading``, and for one's own data ``time_property``, ``time_in``, ``time_zone``, ``fold``,
    ``parts``, ``csv_mapping``, ``json_mapping``, ``base``, ``context``, ``charset``.
    Raises WatchError, QueryError, FormatError, SourceError and RefusedError, with the reason as a sentence.
    """
    understood, feeds, state = _opened(query, streams, options)
    return _begin(understood, feeds, state, options)


@overload
def awatch(
    query: Mapping[str, Query], *streams: Stream, **options: Unpack[Options]
) -> AsyncWatch[tuple[str, Answer]]: ...
@overload
def awatch(query: Query, *streams: Stream, **options: Unpack[Options]) -> AsyncWatch[Answer]: ...
def awatch(query: Query | Mapping[str, Query], *streams: Stream, **options: Unpack[Options]) -> AsyncWatch[Any]:
    """``watch`` for ``async for``: streams may be asynchronous iterables, and the engine runs in a thread."""
    understood, feeds, state = _opened(query, streams, options)
    return _begin_asynchronous(understood, feeds, state, options)


def _opened(
    query: Query | Mapping[str, Query], streams: Sequence[Stream], options: Options
) -> tuple[tuple[Understood, ...], list[StreamFeed], "WatchState | None"]:
    """The parsed queries, the opened sources, and the state of a durable watch."""
    # The type checker knows the options, a caller without one does not, and a misspelt option must not be ignored.
    if unknown := set(options) - set(Options.__annotations__):
        raise TypeError(
            f"watch has no option {', '.join(sorted(unknown))}: it has {', '.join(Options.__annotations__)}"
        )
    own = {field.name for field in fields(Terms)}
    terms = Terms(**{name: value for name, value in options.items() if name in own})  # type: ignore[arg-type]
    understood = understand(query, terms)
    named = list(dict.fromkeys(stream for query_ in understood for stream in query_.query.streams))
    lateness = max(
        (query_.semantics.lateness for query_ in understood if query_.semantics.lateness is not None), default=None
    )
    reading = read_as(cast(Mapping[str, Any], options), understood, lateness)
    folder = options.get("state")
    if folder is None:
        return understood, open_feeds(streams, named, reading), None
    from streamgauge.watching import durable

    state = durable.WatchState(Path(folder), understood, options.get("engine", "live"), options.get("shards", 1))
    # The folder is locked from here on; an error in opening the sources must release it.
    with durable.closed_unless_done(state):
        restored = tuple([state.restored(query_) for query_ in understood])
        return restored, open_feeds(streams, named, reading, state.after), state


def read_as(arguments: Mapping[str, Any], queries: Sequence[Understood], lateness: int | None) -> Reading:
    """Reading options from ``watch``'s, with the queries' prefixes and lateness as defaults."""
    reading = arguments.get("reading") or Reading()
    timing = {name: arguments[name] for name in OWN_DATA_NAMES if arguments.get(name) is not None}
    prefixes = {prefix: iri for query in queries for prefix, iri in query.prefixes.items()} | dict(reading.prefixes)
    # The reading's own option wins over what the queries allow.
    late = lateness if reading.lateness is None else reading.lateness
    return replace(reading, lateness=late, prefixes=prefixes, **timing)


def _begin(
    queries: Sequence[Understood], feeds: Sequence[StreamFeed], state: "WatchState | None", options: Options
) -> Watch[Any]:
    if any(isinstance(feed.items, AsyncIterable) for feed in feeds):
        for feed in feeds:
            feed.close()
        if state is not None:
            state.session.close()
        raise WatchError("an asynchronous iterable is watched by awatch: async for answer in streamgauge.awatch(...)")
    # The simple case has no threads: each answer that is asked for pulls elements from the sources in the caller's own.
    if state is None and not _by_arrival(feeds, options) and not _own_pace(options):
        return _watch(queries, feeds, None, options, by_time([_plain(feed) for feed in feeds]), None)
    arrivals = _arrivals(state, options)
    begun = _watch(queries, feeds, state, options, arrivals, arrivals)
    _read(arrivals, feeds, state, options)
    return begun


def _begin_asynchronous(
    queries: Sequence[Understood], feeds: Sequence[StreamFeed], state: "WatchState | None", options: Options
) -> AsyncWatch[Any]:
    arrivals = _arrivals(state, options)
    begun = _watch(queries, feeds, state, options, arrivals, arrivals)
    if state is not None and any(isinstance(feed.items, AsyncIterable) for feed in feeds):
        begun.close()
        raise WatchError("an asynchronous iterable cannot be durable: another process could not resume it")
    pumps = [(arrivals.expect(), feed.items) for feed in feeds if isinstance(feed.items, AsyncIterable)]
    _read(arrivals, [feed for feed in feeds if not isinstance(feed.items, AsyncIterable)], state, options)
    return AsyncWatch(begun, arrivals, pumps)


def is_durable(answers: Watch[Any]) -> "TypeGuard[DurableWatch]":
    """Whether a watch has a state."""
    return answers.durable


def _arrivals(state: "WatchState | None", options: Options) -> MergedStreams:
    """The merged items of sources; the watch polls its other work at these intervals."""
    if state is not None:
        from streamgauge.watching import durable

        return MergedStreams(together=durable.TOGETHER_S)
    return MergedStreams(BEAT_S if options.get("advance") else None)


def _watch(
    queries: Sequence[Understood],
    feeds: Sequence[StreamFeed],
    state: "WatchState | None",
    options: Options,
    items: Iterable[Any],
    arrivals: MergedStreams | None,
) -> Watch[Any]:
    ready: deque[Any] = deque()

    def leave() -> None:
        if arrivals is not None:
            arrivals.stop()
        for feed in feeds:
            feed.close()
        if arrivals is not None:
            arrivals.join()

    # Answers of a durable watch are returned after a commit, so an answer by itself wakes nobody.
    wake = None if arrivals is None or state is not None else arrivals.wake
    emits = [_emit(one.name, ready, wake) if state is None else _making(one.name, ready) for one in queries]
    session_queries = [SessionQuery(one.query, one.semantics, emit) for one, emit in zip(queries, emits, strict=True)]
    moves = moved if options.get("t0") is None else as_declared
    # Last: a resumed watch goes on with the first window of the process before, even if t0 is given again.
    moves = resumed if state is not None and state.begun else moves
    try:
        own, sharding = _spread(queries, options)
        settled = None if state is None else state.settled
        engine = load(options.get("engine", "live"))
        asking = EngineSession(engine, session_queries, moves, _failed(arrivals), own, settled)
    except Exception:
        leave()
        if state is not None:
            state.session.close()
        raise
    passing = Passing(options.get("end", "windows"), _wall(options))
    if state is not None:
        from streamgauge.watching import durable

        with durable.closed_unless_done(state, leave):
            note = (options.get("reading") or Reading()).note
            begun = durable.DurableWatch(state, ready, queries, asking, items, passing, feeds, leave, note)
        if arrivals is not None:
            arrivals.until_due = begun.until_due
        return begun
    return Watch(queries, asking, ready, items, passing, feeds, leave, sharding)


def _spread(queries: Sequence[Understood], options: Options) -> tuple[Mapping[str, int], str]:
    """The engine's option for the number of processes, and a sentence on the distribution; WatchError."""
    shards, name = options.get("shards", 1), options.get("engine", "live")
    if shards == 1:
        return {}, ""
    engine = load(name)
    if "shards" not in option_names(engine):
        raise WatchError(f"the engine {name} is one process: shards is an option of live")
    return {"shards": shards}, sharding_of(engine, [(query.query, query.semantics) for query in queries], shards)


def _failed(arrivals: MergedStreams | None) -> Callable[[str], None]:
    """A callback with the reason why an engine's process ended; engines in this process need none."""

    def failed(why: str) -> None:
        if arrivals is not None:
            arrivals.fail(PipeError(why))

    return failed


def _emit(name: str | None, ready: deque[Any], wake: Callable[[], None] | None) -> Emit:
    def emit(answer: Answer) -> None:
        ready.append(answer if name is None else (name, answer))
        if wake is not None:
            wake()

    return emit


def _making(name: str | None, emitted: deque[Any]) -> Emit:
    from streamgauge.watching import durable

    return lambda answer: emitted.append((name or durable.WHOLE, answer))


def _wall(options: Options) -> Callable[[], int] | None:
    clock = options.get("advance")
    return wall_clock if clock == "wall" else clock


def _by_arrival(feeds: Sequence[StreamFeed], options: Options) -> bool:
    """Whether several streams are merged by arrival."""
    merge = options.get("merge")
    # Merging by time waits for the slowest source; a live one may be silent for hours.
    return merge == "arrival" or (merge is None and len(feeds) > 1 and any(feed.live for feed in feeds))


def _own_pace(options: Options) -> bool:
    """Whether answers may arrive between elements: by time, in shards, or from another process."""
    own_process = hasattr(load(options.get("engine", "live")), "command")
    return own_process or options.get("advance") is not None or options.get("shards", 1) != 1


def _read(arrivals: MergedStreams, feeds: Sequence[StreamFeed], state: "WatchState | None", options: Options) -> None:
    """Read each source in a thread, or all in one if they are merged by time."""
    if state is not None:
        from streamgauge.watching import durable

        placed = durable.placed_items(feeds)
        for placed_source in placed if _by_arrival(feeds, options) else [durable.placed_by_time(placed)]:
            arrivals.read(placed_source)
        return
    plain = [_plain(feed) for feed in feeds]
    if _by_arrival(feeds, options):
        for items in plain:
            arrivals.read(one_by_one(items))
    elif plain:
        arrivals.read(by_time(plain))


def _plain(feed: StreamFeed) -> "Iterable[Taken]":
    return cast("Iterable[Taken]", feed.items)


__all__ = ["AsyncWatch", "Options", "Watch", "WatchError", "awatch", "watch"]
