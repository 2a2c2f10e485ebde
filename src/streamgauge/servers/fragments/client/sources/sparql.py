"""SPARQL endpoints as sources: one query per pattern (SPARQL 1.1 Protocol)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote, urlencode

import pyoxigraph as ox

from streamgauge.formats.bounds import check_results
from streamgauge.formats.canonical import value_text
from streamgauge.model.algebra import Node, Var
from streamgauge.model.terms import Term, is_blank, is_literal, plain
from streamgauge.servers.fragments import ANYWHERE, DEFAULT, Quad, QuadPattern
from streamgauge.servers.fragments.client import (
    Binding,
    FetchedQuads,
    LinkedDataError,
    LinkedDataSource,
    Response,
    UnavailableError,
    combined,
    naming_of,
    read_quads,
)
from streamgauge.servers.fragments.client.caching_client import CachingHttpClient
from streamgauge.servers.fragments.client.sources import FirstResponse, gather_all, matching_quads, restrictions
from streamgauge.servers.fragments.client.transport import AddressRules, RefusedAddressError

RANK: Final = 40

_RESULTS: Final = {
    "application/sparql-results+json": ox.QueryResultsFormat.JSON,
    "application/json": ox.QueryResultsFormat.JSON,
    "application/sparql-results+xml": ox.QueryResultsFormat.XML,
    "application/xml": ox.QueryResultsFormat.XML,
}
_ACCEPT: Final = "application/sparql-results+json,application/sparql-results+xml;q=0.8"
_SERVICE: Final = "http://www.w3.org/ns/sparql-service-description#"
_REQUEST: Final = 500
"""The cost of a request, in rows."""

_SEEDS: Final = 200
"""Solution mappings in a request."""


async def recognise(first: FirstResponse) -> LinkedDataSource | None:
    """An endpoint with a service description, or one that answers ASK {} and has no RDF at its bare address."""
    described = _described(first)
    if described is None and (
        # An address with RDF is a document; one that may not be asked, or does not respond, is not asked again.
        first.rdf is not None or isinstance(first.refused, (RefusedAddressError, UnavailableError))
    ):
        return None
    endpoint = SparqlSource(described or first.address, first.web, first.reach)
    if described is not None:
        return endpoint
    try:
        response = await endpoint.ask("ASK {}")
        solutions = _read(response)
    except LinkedDataError:
        return None
    return endpoint if isinstance(solutions, ox.QueryBoolean) else None


def _described(first: FirstResponse) -> str | None:
    """The endpoint's address by its service description (SPARQL 1.1 Service Description), if there is one."""
    if first.rdf is None:
        return None
    statements = read_quads(first.rdf, first.web.limits.quads)
    services = [s for s, p, o, _ in statements if p.endswith("#type>") and o == f"<{_SERVICE}Service>"]
    if not services:
        return None
    ends = [plain(o) for s, p, o, _ in statements if s in services and p == f"<{_SERVICE}endpoint>"]
    return first.reach.link(first.rdf.address, ends[0]) if ends else first.rdf.address


@dataclass(frozen=True, slots=True)
class SparqlSource:
    """An endpoint; it decides what its default graph contains."""

    address: str
    web: CachingHttpClient
    reach: AddressRules

    async def count(self, pattern: QuadPattern) -> int:
        """The number of solutions of the pattern."""
        return (await self._counted(pattern))[0]

    async def fetch(self, pattern: QuadPattern, seeds: Sequence[Binding] = ()) -> FetchedQuads:
        """The quads of the pattern's solutions; with seeds, restricted by VALUES where that costs less.

        LinkedDataError if fewer solutions arrive than were counted: endpoints cut long results silently.
        """
        count, response = await self._counted(pattern)
        if not count:
            return combined((), (response,))
        narrow = restrictions(pattern, seeds)
        parts = [narrow[begin : begin + _SEEDS] for begin in range(0, len(narrow), _SEEDS)] if all(narrow) else []
        # With seeds about one row for each is expected.
        if not parts or len(parts) * _REQUEST + len(narrow) >= _REQUEST + count:
            parts = [()]
        responses = await gather_all(self.ask(_select(pattern, part)) for part in parts)
        quads = [_quad(pattern, row) for response in responses for row in _rows(response, self.web.limits.quads)]
        # With seeds fewer solutions are expected, so truncation shows only in whole answers.
        if parts == [()] and len(quads) < count:
            raise LinkedDataError(
                self.address, f"returns {len(quads)} of {count} solutions, so it truncates answers: ask for less"
            )
        return combined(matching_quads(pattern, quads), responses)

    async def ask(self, query: str) -> Response:
        """The response to a query: by GET, which can be cached, unless the address is too long."""
        mark = "&" if "?" in self.address else "?"
        address = f"{self.address}{mark}query={quote(query, safe='')}"
        # POST only where it has to be: its responses are not cached.
        if len(address) <= self.web.limits.address:
            return await self.web.get(address, self.reach, _ACCEPT)
        form = {"content-type": "application/x-www-form-urlencoded", "accept": _ACCEPT}
        return await self.web.post(self.address, self.reach, urlencode({"query": query}).encode(), form)

    async def _counted(self, pattern: QuadPattern) -> tuple[int, Response]:
        response = await self.ask(f"SELECT (COUNT(*) AS ?n) WHERE {{ {_where(pattern)} }}")
        rows = _rows(response, 1)
        counted = rows[0].get("n", "") if rows else ""
        number = value_text(counted) if is_literal(counted) else ""
        if not number.isdigit():
            raise LinkedDataError(self.address, "answers a COUNT query without a number")
        return int(number), response


def _select(pattern: QuadPattern, seeds: Sequence[Binding]) -> str:
    return f"SELECT * WHERE {{ {_values(pattern, seeds)}{_where(pattern)} }}"


def _where(pattern: QuadPattern) -> str:
    subject, predicate, object_, graph = (_node(pattern, node) for node in pattern.nodes)
    triple = f"{subject} {predicate} {object_} ."
    if pattern.graph == DEFAULT:
        return triple
    named = f"GRAPH {graph} {{ {triple} }}"
    return f"{{ {triple} }} UNION {{ {named} }}" if pattern.graph == ANYWHERE else named


def _values(pattern: QuadPattern, seeds: Sequence[Binding]) -> str:
    # A variable that no seed binds would be a column of UNDEF.
    used = [variable for variable in pattern.variables if any(variable in seed for seed in seeds)]
    rows = " ".join(f"({' '.join(seed.get(variable, 'UNDEF') for variable in used)})" for seed in seeds)
    return f"VALUES ({' '.join(_node(pattern, term) for term in used)}) {{ {rows} }} " if seeds else ""


def _node(pattern: QuadPattern, node: Node) -> str:
    """A node as SPARQL text; variables are numbered, because their names may be invalid in SPARQL."""
    if isinstance(node, Var):
        return "?g" if node == ANYWHERE else f"?v{pattern.variables.index(node)}"
    # A blank node of this client means nothing to the server: asked for as a variable, and compared afterwards.
    return f"?none{pattern.nodes.index(node)}" if is_blank(node) else node


def _rows(response: Response, limit: int) -> list[dict[str, Term]]:
    """The solutions as terms by variable name; blank nodes are renamed after this response."""
    solutions = _read(response)
    if not isinstance(solutions, ox.QuerySolutions):
        raise LinkedDataError(response.address, "answers a SELECT query without solutions")
    naming, names = naming_of(response.address), [variable.value for variable in solutions.variables]
    rows_: list[dict[str, Term]] = []
    try:
        for solution in solutions:
            if len(rows_) >= limit:
                raise LinkedDataError(response.address, f"has more than {limit} solutions: raise the limit `quads`")
            terms = ((name, solution[name]) for name in names)
            rows_.append({name: naming.term(term) for name, term in terms if term is not None})
    except (SyntaxError, ValueError) as error:
        raise LinkedDataError(response.address, f"cannot be read as solutions: {error}") from error
    return rows_


def _quad(pattern: QuadPattern, row: dict[str, Term]) -> Quad:
    def place(node: Node) -> Term:
        written = _node(pattern, node)
        return row.get(written[1:], DEFAULT) if written.startswith("?") else written

    subject, predicate, object_, graph = map(place, pattern.nodes)
    return subject, predicate, object_, graph


def _read(response: Response) -> ox.QuerySolutions | ox.QueryBoolean:
    form = _RESULTS.get(response.kind)
    if form is None:
        raise LinkedDataError(response.address, f"is {response.kind!r}: solutions are read as SPARQL's JSON or XML")
    try:
        check_results(response.body, form)
        return ox.parse_query_results(response.body, format=form)
    except (SyntaxError, ValueError) as error:
        raise LinkedDataError(response.address, f"cannot be read as solutions: {error}") from error
