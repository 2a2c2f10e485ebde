"""What may be watched: files, URLs and Python iterables as streams of elements."""

import re
from collections.abc import AsyncIterable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

import pyoxigraph as ox

from streamgauge.model.element import StreamElement
from streamgauge.model.terms import Triple
from streamgauge.watching.asked import WatchError
from streamgauge.wire.canonical import Canonical, parse_term
from streamgauge.wire.formats import STREAM, read_stream
from streamgauge.wire.formats.format import Reading
from streamgauge.wire.lines import Advance, Input

Triples: TypeAlias = str | Iterable[Triple | ox.Triple]
"""Triples as N-Triples text, as tuples of three N-Triples terms, or as pyoxigraph's."""

Given: TypeAlias = Input | tuple[int, Triples]
"""An element, an advance, or (application time in ms, triples)."""

Source: TypeAlias = str | Path | Iterable[Given] | AsyncIterable[Given]
Stream: TypeAlias = Source | Mapping[str, Source]
"""A path or URL, ``IRI=URL``, something to iterate over, or a dictionary from stream IRI to one of these."""

_NAMED = re.compile(r"(?:<([^>]+)>|([A-Za-z][A-Za-z0-9+.-]*:[^?=]*))=(.+)")
"""``IRI=URL``; an IRI with ``?`` or ``=`` in it is written in angle brackets."""

_LIVE = ("mqtt", "kafka", "sse")


@dataclass(frozen=True, slots=True)
class Feed:
    """One source opened: what comes on it, how to end it, whether it is live (its end and its silence are unknown)."""

    items: Iterable[Input] | AsyncIterable[Input]
    close: Callable[[], object]
    live: bool


def open_feeds(streams: Sequence[Stream], named: Sequence[str], reading: Reading) -> list[Feed]:
    """Every source opened; elements that say no stream are of the query's only one (``named``)."""
    pairs = [pair for each in streams for pair in _pairs(each)]
    if not pairs:
        raise WatchError("there is no stream to watch: name a file, a URL or something to iterate over")
    silent = named[0] if len(named) == 1 else STREAM
    return [_open(iri, source, replace(reading, stream=iri or silent)) for iri, source in pairs]


def _pairs(stream: Stream) -> list[tuple[str | None, Source]]:
    if isinstance(stream, Mapping):
        return list(stream.items())
    if isinstance(stream, str):
        found = _NAMED.fullmatch(stream)
        if found:
            return [(found[1] or found[2], found[3])]
    return [(None, stream)]


def _open(iri: str | None, source: Source, reading: Reading) -> Feed:
    if isinstance(source, str | Path):
        feed = _open_url(str(source), reading)
    elif isinstance(source, AsyncIterable):
        feed = Feed(_awaited(source, _Making(reading.stream)), lambda: None, live=True)
    else:
        feed = Feed(map(_Making(reading.stream), source), lambda: None, live=False)
    if iri is None or not isinstance(source, str | Path):
        return feed
    return Feed(_of_stream(feed.items, iri), feed.close, feed.live)


def _open_url(url: str, reading: Reading) -> Feed:
    items = read_stream(url, stream=reading.stream, interval=reading.interval, lateness=reading.lateness)
    return Feed(items, lambda: None, live=url.split(":")[0] in _LIVE or url == "-")


def _of_stream(items: Any, iri: str) -> Iterator[Input]:
    """Whatever comes, as elements of one stream."""
    return (replace(item, stream=iri) if isinstance(item, StreamElement) else item for item in items)


async def _awaited(source: AsyncIterable[Given], making: "_Making") -> Any:
    async for given in source:
        yield making(given)


class _Making:
    """What an iterable gives as elements of a stream, numbered in the order in which it comes."""

    def __init__(self, stream: str) -> None:
        self._stream, self._next, self._canonical = stream, 0, Canonical()

    def __call__(self, given: Given) -> Input:
        """The element; WatchError says what was expected."""
        if isinstance(given, StreamElement | Advance):
            return given
        try:
            time, triples = given
        except (TypeError, ValueError):
            raise WatchError(f"{given!r:.80} is no stream element: give (time in ms, triples)") from None
        if type(time) is not int:
            raise WatchError(f"{time!r:.80} is no time: a whole number of ms is expected")
        self._next += 1
        return StreamElement(self._stream, time, self._next - 1, self._triples(triples))

    def _triples(self, triples: Triples) -> tuple[Triple, ...]:
        try:
            if isinstance(triples, str):
                return self._canonical.triples(ox.parse(triples, format=ox.RdfFormat.N_TRIPLES))
            return tuple([self._triple(triple) for triple in triples])
        except (SyntaxError, TypeError, ValueError) as error:
            raise WatchError(f"not triples: {error}: give N-Triples text or tuples of three N-Triples terms") from error

    def _triple(self, triple: Triple | ox.Triple) -> Triple:
        if isinstance(triple, ox.Triple | ox.Quad):
            return self._canonical.triple(triple)
        subject, predicate, obj = triple
        term = self._canonical.term
        return term(parse_term(subject)), term(parse_term(predicate)), term(parse_term(obj))
