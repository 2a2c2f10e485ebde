"""The inputs of a watch: queries with their semantics and static data, and streams from files, URLs and iterables."""

from collections.abc import AsyncIterable, Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import pyoxigraph as ox

from streamgauge.engines import load
from streamgauge.formats.canonical import parse_term, to_term, to_triple
from streamgauge.formats.lines import Advance, Input
from streamgauge.formats.ntriples import NTriplesReader
from streamgauge.formats.streams import read_triples
from streamgauge.formats.streams.format import Reading, check_triple, checked, which
from streamgauge.model.element import StreamElement
from streamgauge.model.engine import Engine
from streamgauge.model.mistake import MistakeError, obstacle
from streamgauge.model.query import ContinuousQuery, static_missing, static_triples
from streamgauge.model.semantics import Semantics
from streamgauge.model.terms import Triple
from streamgauge.query import QueryError, detect, parse
from streamgauge.query.prologue import declared_prefixes
from streamgauge.semantics.profiles import profile
from streamgauge.servers.queries.sessions import fixed, profile_for
from streamgauge.sources import Source, open_source
from streamgauge.sources.contract import Position, Resumable, parse_address
from streamgauge.sources.named import (
    NamedSource,
    is_live,
    named_source,
    of_stream,
    reading_for,
    refuse_names,
    shared_readings,
)
from streamgauge.workloads.parameters import duration, instant

if TYPE_CHECKING:
    from streamgauge.formats.batches import Taken

Query: TypeAlias = str | Path | ContinuousQuery
"""A query's text, its file's path, or a query object."""

Static: TypeAlias = str | Path | Iterable[Triple] | None
"""Background data: an RDF file, or triples."""


class WatchError(MistakeError, ValueError):
    """A query or stream that cannot be watched; the sentence says what to do."""


@dataclass(frozen=True, slots=True)
class Terms:
    """Options of queries: the engine's name, a semantics or a profile's name (``None``: the dialect's).

    ``lateness`` (ms or text such as ``2s``) and ``t0`` (ms, text or a date) override the semantics' own.
    """

    engine: str = "live"
    semantics: Semantics | str | None = None
    static: Static = None
    lateness: int | str | None = None
    t0: int | str | None = None


@dataclass(frozen=True, slots=True)
class Understood:
    """A parsed query with its name (``None`` if it is the only one), semantics and declared prefixes."""

    name: str | None
    query: ContinuousQuery
    semantics: Semantics
    prefixes: Mapping[str, str] = field(default_factory=dict, hash=False)


def understand(queries: Query | Mapping[str, Query], terms: Terms) -> tuple[Understood, ...]:
    """Parse queries and attach their static data; WatchError, QueryError or FormatError."""
    static = _static(terms.static)
    engine = load(terms.engine)
    if not isinstance(queries, Mapping):
        return (_understand(None, queries, static, engine, terms),)
    if not queries:
        raise WatchError("there is no query to watch: name at least one")
    return tuple(_understand(name, query, static, engine, terms) for name, query in queries.items())


def _understand(
    name: str | None, query: Query, static: tuple[Triple, ...] | None, engine: Engine, terms: Terms
) -> Understood:
    query_, dialect, text = _read(query)
    if static is not None:
        query_ = query_.with_static(static)
    # Silently empty background data would make every answer empty.
    elif query_.background and not query_.static:
        raise WatchError(static_missing(query_))
    return Understood(name, query_, _semantics(terms, dialect, engine), declared_prefixes(text))


def _read(query: Query) -> tuple[ContinuousQuery, str, str]:
    """The query, its dialect, and its text, empty for a query object."""
    if isinstance(query, ContinuousQuery):
        return query, "rspql", ""
    # Every query has a brace, and next to no path.
    text = query if isinstance(query, str) and "{" in query else _text(Path(query))
    dialect = detect(text)
    try:
        return parse(text, dialect), dialect, text
    except QueryError as error:
        # A query from a file is named by it; for a text the position says enough.
        raise error if text is query else WatchError(f"{query}, {error}") from error


def _text(path: Path) -> str:
    try:
        # Editors on Windows begin a file with a byte order mark, which no grammar has.
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise WatchError(f"{path}: this query cannot be read: {obstacle(error)}") from error


def _static(static: Static) -> tuple[Triple, ...] | None:
    if static is None:
        return None
    if isinstance(static, str | Path):
        return tuple(read_triples(static))
    try:
        return static_triples(static)
    except ValueError as error:
        raise WatchError(str(error)) from error


def _semantics(terms: Terms, dialect: str, engine: Engine) -> Semantics:
    wanted = terms.semantics or profile_for(dialect, engine)
    semantics = profile(wanted) if isinstance(wanted, str) else wanted
    if terms.lateness is not None:
        semantics = replace(semantics, lateness=_milliseconds(terms.lateness))
    t0 = first_window(terms.t0)
    return semantics if t0 is None else fixed(semantics, t0)


def first_window(t0: int | str | None) -> int | None:
    """The start of the first window (ms) from ms, a duration or a date (2026-03-01T08:00:00Z); WatchError."""
    try:
        return None if t0 is None else instant(t0)
    except ValueError as error:
        raise WatchError(f"t0 is {t0!r}: {error}") from error


def _milliseconds(lateness: int | str) -> int:
    try:
        return duration(lateness)
    except ValueError as error:
        raise WatchError(f"lateness is {lateness!r}: {error}") from error


Triples: TypeAlias = str | Iterable[Triple | ox.Triple]
"""Triples as N-Triples text, as tuples of three N-Triples terms, or as pyoxigraph's."""

Item: TypeAlias = Input | tuple[int, Triples]
"""An element, an advance, or (application time in ms, triples)."""

Given: TypeAlias = str | Path | Iterable[Item] | AsyncIterable[Item]
Stream: TypeAlias = Given | Mapping[str, Given]
"""A path or URL, ``IRI=URL``, something to iterate over, or a dictionary from stream IRI to one of these."""


After: TypeAlias = Callable[[str], Position | None]
"""The position of a source by its key; ``None`` if it starts anew."""


@dataclass(frozen=True, slots=True)
class StreamFeed:
    """An opened source; ``live`` if its end and its pauses are unknown.

    ``key`` identifies it within a watch. ``waits``: it sends at most a few items ahead of the settled ones.
    """

    items: "Iterable[Taken] | AsyncIterable[Input]"
    live: bool = False
    source: Source | None = None
    key: str = ""
    waits: bool = False

    @property
    def resumable(self) -> Resumable | None:
        """The source, if another process can resume it."""
        return self.source if isinstance(self.source, Resumable) else None

    def close(self) -> None:
        """Close the source, from any thread."""
        if self.source is not None:
            self.source.close()


def open_feeds(
    streams: Sequence[Stream], named: Sequence[str], reading: Reading, after: After | None = None
) -> list[StreamFeed]:
    """Open every source; elements without a stream belong to the queries' only one (``named``).

    With ``after``, sources resume at its positions by key, and acknowledge only what is settled.
    """
    pairs = given_pairs(streams)
    if not pairs:
        raise WatchError("there is no stream to watch: name a file, a URL or something to iterate over")
    called = (str(source) if isinstance(source, str | Path) else "something to iterate over" for _, source in pairs)
    # Before anything is opened: the mistake is in the call, not in a source.
    refuse_names((NamedSource(name, iri) for name, (iri, _) in zip(called, pairs, strict=True)), named)
    readings = shared_readings([source if isinstance(source, str | Path) else None for _, source in pairs], reading)
    feeds: list[StreamFeed] = []
    with ExitStack() as opened:
        for (iri, source), own in zip(pairs, readings, strict=True):
            feeds.append(_open(source, reading_for(NamedSource("", iri), named, own), iri, after, len(pairs) > 1))
            # If a later source cannot be opened, the connections of the earlier ones would stay open.
            opened.callback(feeds[-1].close)
        # All are open: from here on the watch closes them.
        opened.pop_all()
    return feeds


def given_pairs(streams: Sequence[Stream]) -> list[tuple[str | None, Given]]:
    """Every source with the IRI of its stream, ``None`` if undeclared."""
    return [pair for stream in streams for pair in _pairs(stream)]


def _pairs(stream: Stream) -> list[tuple[str | None, Given]]:
    if isinstance(stream, Mapping):
        return list(stream.items())
    if isinstance(stream, str):
        source = named_source(stream)
        return [(source.iri, source.address)]
    return [(None, stream)]


def _open(feed: Given, reading: Reading, iri: str | None, after: After | None, apart: bool) -> StreamFeed:
    """Open a source; ``apart``: its elements are merged with others', so that each needs a place of its own."""
    if isinstance(feed, str | Path):
        address = parse_address(str(feed))
        # The same address may feed two streams.
        key = f"<{iri}> from {address.text}" if iri else address.text
        source = open_source(str(feed), reading, after=None if after is None else after(key))
        waits = after is not None and isinstance(source, Resumable) and source.hold(apart=apart)
        items = source.items()
        return StreamFeed(items if iri is None else of_stream(items, iri), is_live(address), source, key, waits)
    making, key = _Making(reading), f"<{iri}>" if iri else "something to iterate over"
    if isinstance(feed, AsyncIterable):
        return StreamFeed(_awaited(feed, making), live=True, key=key)
    return StreamFeed(map(making, feed), key=key)


async def _awaited(source: AsyncIterable[Item], making: "_Making") -> Any:
    async for item in source:
        yield making(item)


class _Making:
    """Converts the items of an iterable to elements of a stream, numbered in their order."""

    def __init__(self, reading: Reading) -> None:
        self._stream, self._among, self._next = reading.stream, reading.among, 0
        self._reader = NTriplesReader()

    def __call__(self, item: Item) -> Input:
        """The element of an item; WatchError if it is none."""
        if isinstance(item, StreamElement):
            try:
                return checked(item)
            except ValueError as error:
                raise WatchError(str(error)) from error
        if isinstance(item, Advance):
            return item
        try:
            time, triples = item
        except (TypeError, ValueError):
            raise WatchError(f"{item!r:.80} is not a stream element: give (time in ms, triples)") from None
        # A bool is an int, but not a time.
        if type(time) is not int:
            raise WatchError(f"{time!r:.80} is not a time: a whole number of ms is expected")
        if self._among:
            raise WatchError(
                f"element {self._next}: {which(self._among)} (a dictionary from IRI to stream does it too)"
            )
        self._next += 1
        return StreamElement(self._stream, time, self._next - 1, self._triples(triples))

    def _triples(self, triples: Triples) -> tuple[Triple, ...]:
        where = f"element {self._next - 1}"
        try:
            if isinstance(triples, str):
                return self._reader.triples(triples.encode())
            return tuple([self._triple(triple, f"{where}, triple {at}") for at, triple in enumerate(triples)])
        except (SyntaxError, TypeError, ValueError) as error:
            if isinstance(error, WatchError):
                raise
            form = "give N-Triples text or tuples of three N-Triples terms"
            raise WatchError(f"{where}: not triples: {error}: {form}") from error

    def _triple(self, triple: Triple | ox.Triple, where: str) -> Triple:
        if isinstance(triple, ox.Triple | ox.Quad):
            return to_triple(triple)
        try:
            check_triple(triple, where)
        except ValueError as error:
            raise WatchError(str(error)) from error
        try:
            subject, predicate, item = (to_term(parse_term(term)) for term in triple)
        except ValueError as error:
            raise WatchError(f"{where}: {error}") from error
        return subject, predicate, item
