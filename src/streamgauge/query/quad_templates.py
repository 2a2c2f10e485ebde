"""Templates of SPARQL 1.1 Update with GRAPH (sections 3.1.1 to 3.1.3): triple patterns, each with its graph."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from streamgauge.model.algebra import Construct, Graph, Node, Project, TriplePattern
from streamgauge.query.errors import refusal
from streamgauge.query.parser import parse_sparql
from streamgauge.query.tokens import Token, tokens

MOST_SECTIONS: Final = 200
"""Parts of a template that are in different graphs: each is parsed by itself."""

MOST_DECLARED: Final = 20_000
"""Parts of a template times the tokens of the declarations that each is parsed with."""


@dataclass(frozen=True, slots=True)
class GraphTriplePattern(TriplePattern):
    """A triple pattern in a named graph."""

    graph: Node


def graph_of(pattern: TriplePattern) -> Node | None:
    """The graph of a pattern, ``None`` for the default graph."""
    return pattern.graph if isinstance(pattern, GraphTriplePattern) else None


def within(graph: Node | None, pattern: TriplePattern) -> TriplePattern:
    """A pattern in a graph; one that has a graph of its own stays there."""
    if graph is None or isinstance(pattern, GraphTriplePattern):
        return pattern
    return GraphTriplePattern(pattern.subject, pattern.predicate, pattern.object, graph)


@dataclass(frozen=True, slots=True)
class _Section:
    """Triples of a template that are in one graph: the text of its name, empty for the default graph."""

    graph: str
    text: str


def template(prologue: str, text: str) -> tuple[TriplePattern, ...]:
    """The patterns of a template; blank nodes with the same label are the same in all of its graphs. QueryError."""
    sections = _sections(text)
    if all(not each.graph for each in sections):
        return _constructed(prologue, text)
    if len(sections) * (1 + len(tokens(prologue))) > MOST_DECLARED or len(sections) > MOST_SECTIONS:
        raise refusal(f"{len(sections)} graphs in one template: send several updates, or fewer declarations", text, 0)
    whole = _constructed(prologue, "\n. ".join(each.text for each in sections))
    counts = [len(_constructed(prologue, each.text)) for each in sections]
    if sum(counts) != len(whole):
        raise refusal("the triples of this template cannot be told apart by graph: write a dot after each", text, 0)
    found: list[TriplePattern] = []
    for section, count in zip(sections, counts, strict=True):
        graph = graph_name(prologue, section.graph) if section.graph else None
        found += (within(graph, each) for each in whole[len(found) : len(found) + count])
    return tuple(found)


def _constructed(prologue: str, text: str) -> tuple[TriplePattern, ...]:
    form = parse_sparql(f"{prologue}\nCONSTRUCT {{{text}\n}} WHERE {{}}")
    assert isinstance(form, Construct)
    return form.template


def graph_name(prologue: str, text: str) -> Node:
    """The node that names a graph, as a text has it: an IRI, a prefixed name or a variable. QueryError."""
    form = parse_sparql(f"{prologue}\nSELECT * {{ GRAPH {text} {{ ?s ?p ?o }} }}")
    assert isinstance(form.pattern, Project)
    assert isinstance(form.pattern.pattern, Graph)
    return form.pattern.pattern.name


def _sections(text: str) -> list[_Section]:
    """The parts of a template, one after the other, without empty ones."""
    found = tokens(text)
    sections: list[_Section] = []
    start = place = 0
    while place < len(found):
        if not found[place].says("GRAPH"):
            place += 1
            continue
        opening = place + 2
        if opening >= len(found) or found[opening].text != "{":
            raise refusal("GRAPH is followed by one name and { ... }", text, found[place].start)
        closing = _closing(text, found, opening)
        sections.append(_Section("", _between(text, found[start:place])))
        sections.append(_Section(found[place + 1].text, _between(text, found[opening + 1 : closing])))
        start = place = closing + 1
    sections.append(_Section("", _between(text, found[start:])))
    return [each for each in sections if each.text]


def _between(text: str, found: Sequence[Token]) -> str:
    """The text of triples, without the dots around them."""
    triples = list(found)
    while triples and triples[-1].text == ".":
        triples.pop()
    while triples and triples[0].text == ".":
        triples.pop(0)
    return text[triples[0].start : triples[-1].end] if triples else ""


def _closing(text: str, found: Sequence[Token], opening: int) -> int:
    for place in range(opening + 1, len(found)):
        if found[place].text == "{":
            raise refusal("a group within GRAPH of a template: only triples stand there", text, found[place].start)
        if found[place].text == "}":
            return place
    raise refusal("this { is not closed", text, found[opening].start)
