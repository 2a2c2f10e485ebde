"""SPARQL queries answered by our client, which fetches the quads that matter, and pyoxigraph, which does the rest."""

from collections.abc import Iterator, Sequence
from dataclasses import fields, is_dataclass
from itertools import product
from typing import Any

import pyoxigraph as ox

from streamgauge.formats.canonical import parse_term
from streamgauge.model import algebra as al
from streamgauge.query.parser import parse_sparql
from streamgauge.servers.fragments import DEFAULT, QuadPattern
from streamgauge.servers.fragments.client import LinkedDataSource
from streamgauge.servers.fragments.client.caching_client import CachingHttpClient
from streamgauge.servers.fragments.client.sources import solve


def groups(part: Any, graph: al.Node = DEFAULT) -> Iterator[list[QuadPattern]]:
    """The basic graph patterns anywhere in a query, one for each choice of their alternatives."""
    if isinstance(part, al.BGP):
        for chosen in product(*(ways(pattern, graph) for pattern in part.patterns)):
            yield list(chosen)
    elif isinstance(part, al.Graph):
        yield from groups(part.pattern, part.name)
    elif isinstance(part, tuple):
        for item in part:
            yield from groups(item, graph)
    elif is_dataclass(part):
        for field in fields(part):
            yield from groups(getattr(part, field.name), graph)


def ways(pattern: al.TriplePattern, graph: al.Node) -> list[QuadPattern]:
    """The quad patterns that a triple pattern stands for; other paths than alternatives may lead along anything."""
    path = pattern.predicate
    if isinstance(path, al.Alternative) and all(isinstance(choice, str) for choice in path.choices):
        return [QuadPattern(pattern.subject, choice, pattern.object, graph) for choice in path.choices]
    if isinstance(path, al.Var | str):
        return [QuadPattern(pattern.subject, path, pattern.object, graph)]
    return [QuadPattern(al.Var("_:from"), al.Var("_:along"), al.Var("_:to"), graph)]


async def answer(text: str, sources: Sequence[LinkedDataSource], web: CachingHttpClient) -> Any:
    """The query's answer, as pyoxigraph gives it."""
    store = ox.Store()
    for patterns in groups(parse_sparql(text)):
        for row in (await solve(patterns, sources, web)).rows:
            for subject, predicate, object_, graph in (pattern.bound(row).nodes for pattern in patterns):
                named = parse_term(graph) if graph else ox.DefaultGraph()
                store.add(ox.Quad(*map(parse_term, (subject, predicate, object_)), named))
    return store.query(text)


def rows(result: Any) -> Any:
    """An answer in a form that can be compared."""
    if isinstance(result, ox.QueryBoolean):
        return bool(result)
    names = [variable.value for variable in result.variables]
    return sorted(sorted((name, str(row[name])) for name in names if row[name] is not None) for row in result)
