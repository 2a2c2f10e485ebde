"""Quads, and the patterns that fragments are made of (Triple Pattern Fragments; Quad Pattern Fragments)."""

from dataclasses import dataclass
from typing import Final, TypeAlias

from streamgauge.model.algebra import Node, Var
from streamgauge.model.terms import Term

DEFAULT: Final[Term] = ""
"""The default graph, in a quad's fourth place."""

ANYWHERE: Final = Var("*")
"""In a pattern's graph place: any graph, the default graph too; it binds nothing."""

Quad: TypeAlias = tuple[Term, Term, Term, Term]
"""Subject, predicate, object, graph."""

Lasting: TypeAlias = tuple[Quad, int | None]
"""A quad, and when what it says ends (ms); ``None`` when no end is known."""

Match: TypeAlias = tuple[Term | None, Term | None, Term | None, Term | None]
"""What quads are selected by: a term, or ``None`` for anything; in the fourth place for any graph, the default too."""


@dataclass(frozen=True, slots=True)
class QuadPattern:
    """A quad pattern of a query; a variable in the graph's place stands for a named graph (SPARQL's GRAPH)."""

    subject: Node
    predicate: Node
    object: Node
    graph: Node = DEFAULT

    @property
    def nodes(self) -> tuple[Node, Node, Node, Node]:
        """Its four places."""
        return self.subject, self.predicate, self.object, self.graph

    @property
    def variables(self) -> tuple[Var, ...]:
        """Its distinct variables, in order of position."""
        return tuple(dict.fromkeys(node for node in self.nodes if isinstance(node, Var) and node != ANYWHERE))

    @property
    def match(self) -> Match:
        """What a fragment of it selects: at least the quads that match."""
        subject, predicate, object_, graph = (None if isinstance(node, Var) else node for node in self.nodes)
        return subject, predicate, object_, graph
