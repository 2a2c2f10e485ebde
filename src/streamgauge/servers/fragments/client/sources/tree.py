"""TREE collections and Linked Data Event Streams: all members, or only the latest version of each entity.

Fresh pages are taken from the cache: LDES servers declare their full pages immutable.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final

from streamgauge.formats.canonical import value_text
from streamgauge.model.terms import Term, is_iri, is_literal, plain
from streamgauge.query.clauses import duration
from streamgauge.servers.fragments import Quad, QuadPattern
from streamgauge.servers.fragments.client import (
    Binding,
    FetchedQuads,
    LinkedDataError,
    LinkedDataSource,
    Response,
    StatusError,
    combined,
    read_quads,
)
from streamgauge.servers.fragments.client.shapes import ShapeGraph, described
from streamgauge.servers.fragments.client.sources import FirstResponse, WholeSource, gather_all, matching_quads
from streamgauge.servers.fragments.client.transport import resolved_address

RANK: Final = 30

_TREE: Final = "<https://w3id.org/tree#"
_LDES: Final = "<https://w3id.org/ldes#"
_MEMBER, _RELATION, _NODE, _VIEW, _SHAPE = (
    f"{_TREE}{name}>" for name in ("member", "relation", "node", "view", "shape")
)
_NEVER: Final = (float("-inf"), "")


async def recognise(first: FirstResponse) -> LinkedDataSource | None:
    """A source whose first response has members, relations or a view in TREE's vocabulary."""
    if first.rdf is None:
        return None
    statements = read_quads(first.rdf, first.web.limits.quads)
    if not {predicate for _, predicate, *_ in statements} & {_MEMBER, _RELATION, _VIEW}:
        return None
    return TreeSource(first.address, first.web, first.reach)


@dataclass(frozen=True, slots=True)
class TreeSource(WholeSource):
    """A collection behind one of its nodes; every pattern reads all nodes, fresh ones from the cache."""

    async def fetch(self, pattern: QuadPattern, seeds: Sequence[Binding] = ()) -> FetchedQuads:  # noqa: ARG002
        """The matching quads of members; ``until`` is by the polling interval if no response states a lifetime."""
        responses = await self._nodes()
        statements = [quad for response in responses for quad in read_quads(response, self.web.limits.quads)]
        statements += await self._remote_shapes(statements)
        combined_quads = combined(matching_quads(pattern, _members(statements)), responses)
        interval = _interval(statements)
        if combined_quads.until is None and interval is not None:
            return replace(combined_quads, until=combined_quads.at + interval)
        return combined_quads

    async def _remote_shapes(self, statements: Sequence[Quad]) -> list[Quad]:
        """The quads of shapes that are named but not contained in the pages, if they can be fetched."""
        about = {quad[0] for quad in statements}
        named = [shape for _, predicate, shape, _ in statements if predicate == _SHAPE and is_iri(shape)]
        shapes = await gather_all(self._shape(shape) for shape in dict.fromkeys(named) if shape not in about)
        return [quad for shape in shapes for quad in shape]

    async def _shape(self, shape: Term) -> Sequence[Quad]:
        try:
            response = await self.web.get(self.reach.link(self.address, shape[1:-1].partition("#")[0]), self.reach)
            return read_quads(response, self.web.limits.quads)
        except LinkedDataError:
            return ()  # of another origin, or missing: then members have their own quads only

    async def _nodes(self) -> list[Response]:
        """All reachable nodes, breadth first; a node that the publisher has removed (410) is skipped."""
        responses: list[Response] = []
        visited, level = {self.address}, [self.address]
        while level:
            nodes = [node for node in await gather_all(map(self._node, level)) if node is not None]
            responses += nodes
            links = (link for node in nodes for link in self._links(node))
            level = [link for link in dict.fromkeys(links) if link not in visited]
            visited.update(level)
            if len(visited) > self.web.limits.pages:
                raise LinkedDataError(
                    self.address, f"has more than {self.web.limits.pages} nodes: raise the limit `pages`"
                )
        return responses

    async def _node(self, address: str) -> Response | None:
        try:
            return await self.web.get(address, self.reach)
        except StatusError as error:
            # LDES retention: publishers remove old nodes while relations to them remain in cached pages.
            if error.status == 410 and address != self.address:
                return None
            raise

    def _links(self, response: Response) -> Iterator[str]:
        """The targets of a node's relations; of a page that is not a node, the views of its collection."""
        statements = read_quads(response, self.web.limits.quads)
        relations = {object_ for _, predicate, object_, _ in statements if predicate == _RELATION}
        for subject, predicate, object_, _ in statements:
            if is_iri(object_) and (
                (predicate == _NODE and subject in relations) or (predicate == _VIEW and not relations)
            ):
                yield self.reach.link(response.address, resolved_address(response.address, object_[1:-1]))


def _members(statements: Sequence[Quad]) -> Iterator[Quad]:
    """The quads of members: of their subjects, of blank nodes that these lead to, and of what their shape includes.

    A member that is the name of a graph consists of that graph.
    """
    members = {object_ for _, predicate, object_, _ in statements if predicate == _MEMBER}
    members -= _superseded(statements, members)
    shapes = tuple(dict.fromkeys(object_ for _, predicate, object_, _ in statements if predicate == _SHAPE))
    graph = ShapeGraph.of(statements)
    for member in members:
        yield from dict.fromkeys(described(member, graph, shapes))


def _superseded(statements: Sequence[Quad], members: set[Term]) -> set[Term]:
    """Members that are earlier versions of an entity, if the stream declares versionOfPath and timestampPath."""
    paths = {predicate: object_ for _, predicate, object_, _ in statements if predicate.startswith(_LDES)}
    of, since = (paths.get(f"{_LDES}{name}>") for name in ("versionOfPath", "timestampPath"))
    if of is None or since is None:
        return set()
    entity = {
        subject: object_ for subject, predicate, object_, _ in statements if predicate == of and subject in members
    }
    times = {
        subject: _instant(value_text(object_) if is_literal(object_) else plain(object_))
        for subject, predicate, object_, _ in statements
        if predicate == since
    }
    last: dict[Term, Term] = {}
    # By name where times are equal, so that every reading keeps the same version.
    for member in sorted(entity, key=lambda member: (times.get(member, _NEVER), member)):
        last[entity[member]] = member
    return {member for member, whole in entity.items() if last[whole] != member}


def _instant(value: str) -> tuple[float, str]:
    """A sort key for a time; texts that are not times sort before all times after 1970, alphabetically."""
    try:
        time = datetime.fromisoformat(value)
    except ValueError:
        return 0.0, value
    # A time without a zone cannot be compared with one that has it, so it is taken for UTC.
    return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp(), ""


def _interval(statements: Iterable[Quad]) -> int | None:
    """The publisher's polling interval (ms), which is written as seconds or as a duration."""
    stated = [object_ for _, predicate, object_, _ in statements if predicate == f"{_LDES}pollingInterval>"]
    value = value_text(stated[0]) if stated and is_literal(stated[0]) else ""
    if value.isascii() and value.isdigit():
        return int(value[:9]) * 1000
    return duration(value) or None
