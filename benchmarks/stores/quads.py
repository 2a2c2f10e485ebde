"""Departures as the trains workload has them: four facts that stay, two that end, in a graph of three departures."""

from collections.abc import Iterator

from streamgauge.servers.fragments.quads import ExpiringQuad, Match, Quad

TRAIN = "http://example.org/train#"
NOW = 1_700_000_000_000
DELAY: Match = (None, f"<{TRAIN}p4>", None, None)
"""The largest range that is asked for: a predicate of every departure."""


def departure(number: int) -> str:
    """Its IRI."""
    return f"<http://example.org/departure/{number}>"


def quads(size: int) -> Iterator[ExpiringQuad]:
    """About ``size`` quads, by departure."""
    for number in range(int(size / 6.34)):
        subject, graph = departure(number), f"<http://example.org/graphs#{number // 3}>"
        end = NOW + number % 60 * 1000
        for place in range(4):
            yield (subject, f"<{TRAIN}p{place}>", f'"{(number * 7919 + place) % 200_000}"', ""), None
        for place in (4, 5):
            yield (subject, f"<{TRAIN}p{place}>", f'"{(number * 31 + place) % 60}"', graph), end
        if number % 3 == 0:
            yield (graph, "<http://example.org/temporal#expiration>", f'"{end}"', ""), end


def update(number: int, size: int) -> list[Quad]:
    """The ``number``-th batch of new facts, all in a graph of their own."""
    graph = f"<http://example.org/graphs#new{number}>"
    return [(departure(each), DELAY[1] or "", f'"{(number + each) % 60}"', graph) for each in range(size)]
