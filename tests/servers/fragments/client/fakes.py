"""Servers in memory that a client meets: a plain Quad Pattern Fragments server, and whatever a handler says."""

import gzip
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from email.utils import formatdate
from functools import cache
from random import Random
from urllib.parse import parse_qs, quote, urlsplit

import httpx

from streamgauge.formats.canonical import parse_term, to_term
from streamgauge.servers.fragments import DEFAULT, Quad
from streamgauge.servers.fragments.client.caching_client import CachingHttpClient
from streamgauge.servers.fragments.client.transport import ClientLimits

HOST = "http://data.example"
HYDRA, VOID = "http://www.w3.org/ns/hydra/core#", "http://rdfs.org/ns/void#"
SD, RDF = "http://www.w3.org/ns/sparql-service-description#", "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
PROPERTIES = {
    "subject": f"{RDF}subject",
    "predicate": f"{RDF}predicate",
    "object": f"{RDF}object",
    "graph": f"{SD}graph",
}
DEFAULT_GRAPH = "urn:ldf:defaultGraph"


class Clock:
    """Time that passes when somebody sleeps; ms."""

    def __init__(self, now: int = 1_700_000_000_000) -> None:
        self.now, self.slept = now, []

    def __call__(self) -> int:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += round(seconds * 1000)


class Chunks(httpx.AsyncByteStream):
    """A body in parts."""

    def __init__(self, parts: Iterable[bytes]) -> None:
        self._parts = parts

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for part in self._parts:
            yield part


def reply(status: int = 200, body: bytes = b"", kind: str = "application/trig", **headers: str) -> httpx.Response:
    """A response; header names with _ for -."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return httpx.Response(status, headers={"content-type": kind, **named}, stream=Chunks([body]))


Handler = Callable[[httpx.Request], httpx.Response | Awaitable[httpx.Response]]


def web(
    handler: Handler, clock: Clock | None = None, limits: ClientLimits | None = None, **options: object
) -> CachingHttpClient:
    """A client of one handler for all hosts, without sockets."""
    clock = clock or Clock()
    client = httpx.AsyncClient(transport=httpx.MockTransport(handler))
    return CachingHttpClient(client, clock, clock.sleep, limits or ClientLimits(), random=Random(1), **options)


@dataclass
class FakeServer:
    """A Quad Pattern Fragments server; ``triples`` makes it one of Triple Pattern Fragments, as @ldf/server is both.

    ``alter`` may change (address, metadata lines, response headers) of each page: a server that lies.
    """

    quads: list[Quad]
    clock: Clock = field(default_factory=Clock)
    size: int = 100
    triples: bool = False
    empty_last: bool = False
    bindings: bool = False
    bare: bool = False
    kind: str = "application/trig"
    headers: Callable[[], dict[str, str]] = dict
    alter: Callable[[str, list[str]], list[str]] = lambda _address, lines: lines
    asked: list[str] = field(default_factory=list)
    base: str = HOST

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.asked.append(str(request.url))
        given = {name: values[0] for name, values in parse_qs(urlsplit(str(request.url)).query).items()}
        result = self._found(given)
        headers = {"Date": formatdate(self.clock() // 1000, usegmt=True), **self.headers()}
        if headers.get("ETag") and request.headers.get("if-none-match") == headers["ETag"]:
            return httpx.Response(304, headers=headers, stream=Chunks([]))
        body = self._body(str(request.url), given, result).encode()
        if "gzip" in request.headers.get("accept-encoding", ""):
            headers["Content-Encoding"], body = "gzip", gzip.compress(body, mtime=0)
        return httpx.Response(200, headers={"Content-Type": self.kind, **headers}, stream=Chunks([body]))

    def _found(self, given: dict[str, str]) -> list[Quad]:
        wanted = [given.get(name, "") for name in PROPERTIES]
        terms = [(at, read(value)) for at, value in enumerate(wanted) if value and not value.startswith("?")]
        asked = [(at, DEFAULT if term == f"<{DEFAULT_GRAPH}>" else term) for at, term in terms]
        result = self.quads
        for at, term in asked:
            result = [quad for quad in result if quad[at] == term]
        if "values" not in given:
            return result
        bound = [[(wanted.index(name), term) for name, term in row.items()] for row in rows(given["values"])]
        return [quad for quad in result if any(all(quad[at] == term for at, term in row) for row in bound)]

    def _body(self, address: str, given: dict[str, str], result: list[Quad]) -> str:
        number = int(re.sub(r"\D", "", given.get("page", ""))[:4] or 1)
        shown = result[(number - 1) * self.size : number * self.size]
        fragment = self.fragment({name: value for name, value in given.items() if name != "page"})
        lines = self.alter(address, self._metadata(fragment, address, number, len(result)))
        if self.kind == "text/turtle":
            return "".join(f"{s} {p} {o} .\n" for s, p, o, _ in shown) + "\n".join(lines)
        data = "".join(
            f"{s} {p} {o} .\n" if self.triples or not g else f"{g} {{ {s} {p} {o} . }}\n" for s, p, o, g in shown
        )
        return f"{data}<{fragment}#metadata> {{\n" + "\n".join(lines) + "\n}\n"

    def fragment(self, given: dict[str, str]) -> str:
        """The address of a fragment."""
        query = "&".join(f"{name}={quote(value, safe='')}" for name, value in given.items())
        return f"{self.base}/d" + (f"?{query}" if query else "")

    def _metadata(self, fragment: str, address: str, number: int, count: int) -> list[str]:
        places = [place for place in PROPERTIES if place != "graph" or not self.triples]
        lines = [
            f"<{fragment}#metadata> <http://xmlns.com/foaf/0.1/primaryTopic> <{fragment}> .",
            f"<{self.base}/d#dataset> <{VOID}subset> <{fragment}> .",
            f"<{fragment}> <{VOID}subset> <{address}> .",
            f"<{address}> <{VOID}triples> {count} .",
            f"<{address}> <{HYDRA}itemsPerPage> {self.size} .",
            *self._form("plain", places),
        ]
        if not self.triples:
            lines.append(f"<{self.base}/d#dataset> <{SD}defaultGraph> <{DEFAULT_GRAPH}> .")
        if self.bindings:
            lines += self._form("bound", [*places, "values"])
        if count > number * self.size or (self.empty_last and count == number * self.size and count):
            mark = "&" if "?" in fragment else "?"
            lines.append(f"<{address}> <{HYDRA}next> <{fragment}{mark}page={number + 1}> .")
        return lines

    def _form(self, name: str, places: list[str]) -> list[str]:
        kind = "Basic" if self.bare else "Explicit"
        properties = {**PROPERTIES, "values": "urn:streamgauge:values"}
        maps = " ".join(
            f'<{HYDRA}mapping> [ <{HYDRA}variable> "{place}"; <{HYDRA}property> <{properties[place]}> ];'
            for place in places
        )
        return [
            f"<{self.base}/d#dataset> <{HYDRA}search> ["
            f' <{HYDRA}template> "{self.base}/d{{?{",".join(places)}}}"; {maps}'
            f" <{HYDRA}variableRepresentation> <{HYDRA}{kind}Representation> ] ."
        ]


@cache
def read(text: str) -> str:
    """A term as addresses have it."""
    if not text.startswith('"'):
        return text if text.startswith("<<") else f"<{text}>"
    value, _, rest = text[1:].rpartition('"')
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r")
    suffix = f"^^<{rest[2:]}>" if rest.startswith("^^") else rest
    return to_term(parse_term(f'"{escaped}"{suffix}'))


@cache
def rows(text: str) -> list[dict[str, str]]:
    """Rows of IRIs and plain literals without spaces, as VALUES writes them."""
    head, _, body = text.partition("{")
    names = head.strip(" ()").split()
    results = [row.strip(" ()").split() for row in body.rstrip("} ").split(")") if row.strip(" ()")]
    return [{name: term for name, term in zip(names, row, strict=True) if term != "UNDEF"} for row in results]


def quads(text: str) -> list[Quad]:
    """Quads of a tiny notation: ``s p o. s p "text" g.``, names in urn:."""
    return [tuple(map(_term, (*line.split(), "")[:4])) for line in text.split(".") if line.strip()]


def _term(name: str) -> str:
    if name == "":
        return DEFAULT
    if name.isdigit():
        return f'"{name}"^^<http://www.w3.org/2001/XMLSchema#integer>'
    return name if name[0] == '"' else f"<urn:{name}>"


def trains(count: int) -> list[Quad]:
    """Departures in the shape of the paper's: three static and two dynamic triples each."""
    made = []
    for number in range(count):
        values = (number % 5, f'"h{number % 18}"', f'"r{number}"', f'"{number % 14}"', f'"t{number}"')
        names = ("delay", "headSign", "routeLabel", "platform", "departureTime")
        made += [quad for name, value in zip(names, values, strict=True) for quad in quads(f"d{number} {name} {value}")]
    return made
