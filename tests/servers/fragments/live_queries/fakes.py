"""A source and a web without HTTP: facts annotated into a set of quads, asked by pattern."""

from contextlib import contextmanager
from itertools import count

from streamgauge.servers.fragments.annotations import method
from streamgauge.servers.fragments.client import FetchedQuads, LinkedDataError
from streamgauge.servers.fragments.client.caching_client import CacheUse
from streamgauge.servers.fragments.client.sources import matching_quads


class FakeWeb:
    """Time that passes when somebody sleeps."""

    def __init__(self, now=1_000_000):
        self.now = now

    def clock(self):
        return self.now

    async def sleep(self, seconds):
        self.now += int(seconds * 1000)

    @contextmanager
    def round(self, use=CacheUse.CACHED):
        yield

    def time(self, address):
        return self.now

    def due(self, address, time, told):
        return -(-time // 1000) * 1000

    def sets(self, address):
        return 0


class FakeSource:
    """Facts in a style, by pattern; ``requests`` are the patterns that were fetched."""

    def __init__(self, web, style, facts=(), address="http://fake/"):
        self.web, self.style, self.address = web, style, address
        self.fresh = map(str, count())
        self.version, self.requests, self.failing = 0, [], ()
        self.put(facts)

    def put(self, facts, named=None):
        """Hold these facts, and these triples by the name of their graph."""
        quads = method(self.style.method).annotate(facts, self.style, lambda *_: next(self.fresh))
        self.quads = [quad for quad, _ in quads]
        self.quads += [(*triple, name) for name, rows in (named or {}).items() for triple in rows]
        self.version += 1

    async def count(self, pattern):
        return len(matching_quads(pattern, self.quads))

    async def fetch(self, pattern, seeds=()):
        if self.failing:
            raise LinkedDataError(self.address, self.failing)
        self.requests.append((pattern, len(seeds)))
        result = matching_quads(pattern, self.quads)
        if seeds:
            asked = [pattern.bound(seed) for seed in seeds]
            result = [quad for quad in result if any(matching_quads(item, [quad]) for item in asked)]
        at = self.web.now // 1000 * 1000
        return FetchedQuads(tuple(result), at, at, str(hash(tuple(result))), str(self.version))
