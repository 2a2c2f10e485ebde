"""Streams for tests, written element by element and accepted wherever a stream is."""

from collections.abc import Callable, Iterator, Mapping
from typing import Self

import pyoxigraph as ox

from streamgauge.formats.bounds import check_turtle
from streamgauge.formats.canonical import to_triples
from streamgauge.model.element import StreamElement
from streamgauge.model.mistake import MistakeError
from streamgauge.model.terms import Triple
from streamgauge.workloads.parameters import duration


class StreamBuildError(MistakeError, ValueError):
    """An invalid element; the sentence names it and the reason."""


class StreamBuilder:
    """Builds a stream of the IRI ``stream`` element by element; an iterable of stream elements.

    Triples are Turtle with the ``prefixes`` (name to IRI; ``""`` for the empty one). ``at`` and ``every`` return the
    builder, for chained calls.
    """

    def __init__(self, stream: str, prefixes: Mapping[str, str] | None = None) -> None:
        self.stream = stream
        self._head = "".join(f"PREFIX {name}: <{iri}>\n" for name, iri in (prefixes or {}).items())
        self._elements: list[StreamElement] = []

    def at(self, time: int | str, turtle: str, until: int | str | None = None) -> Self:
        """Add an element at a time (ms, or text such as ``2s``), valid up to ``until``. StreamBuildError."""
        where = f"the element at {time}"
        try:
            began, ends = duration(time), None if until is None else duration(until)
            check_turtle(turtle)
            triples = to_triples(ox.parse(self._head + turtle, format=ox.RdfFormat.TURTLE))
        except (ValueError, SyntaxError) as error:
            raise StreamBuildError(f"{where}: {error}") from error
        if not triples:
            raise StreamBuildError(f"{where} has no triple: {turtle!r:.80}")
        self._elements.append(StreamElement(self.stream, began, len(self._elements), triples, until=ends))
        return self

    def every(self, step: int | str, count: int, turtle: Callable[[int], str], begin: int | str = 0) -> Self:
        """Add ``count`` elements, ``step`` (ms or text) apart from ``begin`` on, with ``turtle(number)``."""
        first, apart = duration(begin), duration(step)
        for number in range(count):
            self.at(first + number * apart, turtle(number))
        return self

    @property
    def triples(self) -> tuple[Triple, ...]:
        """All triples in the order of the elements."""
        return tuple(triple for element in self._elements for triple in element.added)

    def __iter__(self) -> Iterator[StreamElement]:
        return iter(self._elements)

    def __len__(self) -> int:
        return len(self._elements)
