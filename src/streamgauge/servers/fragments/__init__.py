"""Changing Linked Data at low server cost: fragments with time, and a client that keeps its answers current.

This module has the quads, patterns and names that server and client share.
"""

from collections import OrderedDict
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Final, Generic, Protocol, TypeAlias, TypeVar

import pyoxigraph as ox

from streamgauge.formats.streams.format import Relabel
from streamgauge.model.algebra import Node, Var
from streamgauge.model.terms import Term, is_literal, plain

DEFAULT: Final[Term] = ""
"""The default graph, as a quad's fourth term."""

ANYWHERE: Final = Var("*")
"""As a pattern's graph: any graph, including the default graph; it binds nothing."""

DEFAULT_IRI: Final[Term] = "<urn:ldf:defaultGraph>"
"""The name of the default graph in a form (``sd:defaultGraph``)."""

VALUES: Final[Term] = "<urn:streamgauge:values>"
"""The property of a form's variable that takes bindings, as SPARQL's VALUES (Hartig, Buil-Aranda, ODBASE 2016)."""

MOST_VALUES: Final[Term] = "<urn:streamgauge:maximumBindings>"
"""The property of a form that states the maximum number of bindings per request."""

VERSION: Final = "Dataset-Version"
"""The header, also of 304s, with the version of the whole data set: it changes with any quad."""

TIME: Final = "Server-Time"
"""The header with the response's Date in ms since 1970: HTTP's Date is rounded to seconds."""

LIMIT: Final[Term] = "<http://www.w3.org/ns/hydra/core#limit>"
"""The property of a form's variable for the number of quads per page (Hydra Core Vocabulary)."""

MOST_QUADS: Final[Term] = "<urn:streamgauge:maximumLimit>"
"""The property of a form that states the maximum number of quads per page."""

CHANGES: Final[Term] = "<urn:streamgauge:changes>"
"""The property of a data set with the URI template (a literal) of a fragment's changes since a version.

A client that accepts ``text/event-stream`` gets an event for each change, and may omit ``since``.
"""

PATCH_TYPE: Final = "application/rdf-patch"
"""The media type of a fragment's changes: RDF Patch."""

Quad: TypeAlias = tuple[Term, Term, Term, Term]
"""Subject, predicate, object, graph."""

ExpiringQuad: TypeAlias = tuple[Quad, int | None]
"""A quad and the time (ms) when its fact ends; ``None`` if no end is known."""

Match: TypeAlias = tuple[Term | None, Term | None, Term | None, Term | None]
"""A selection of quads: a term in each place, or ``None`` for any, the default graph included."""


@dataclass(frozen=True, slots=True)
class QuadPattern:
    """A quad pattern of a query; a variable as graph matches named graphs only (SPARQL's GRAPH)."""

    subject: Node
    predicate: Node
    object: Node
    graph: Node = DEFAULT

    @property
    def nodes(self) -> tuple[Node, Node, Node, Node]:
        """The nodes in the four places of the pattern."""
        return self.subject, self.predicate, self.object, self.graph

    @property
    def variables(self) -> tuple[Var, ...]:
        """The distinct variables of the pattern, in order of position."""
        return tuple(dict.fromkeys(node for node in self.nodes if isinstance(node, Var) and node != ANYWHERE))

    def bound(self, values: Mapping[Var, Term]) -> "QuadPattern":
        """The pattern with terms in the places of variables that have values."""
        return QuadPattern(*(values.get(node, node) if isinstance(node, Var) else node for node in self.nodes))

    @property
    def match(self) -> Match:
        """The selection of its fragment, a superset of the matching quads: it ignores variables that occur twice."""
        subject, predicate, object_, graph = (None if isinstance(node, Var) else node for node in self.nodes)
        # Servers know no repeated variables: whoever asks compares the places itself (`sources.pattern_quads`).
        return subject, predicate, object_, graph


def named_quad(quad: ox.Quad, naming: Relabel) -> Quad:
    """A parsed quad as N-Triples terms; ``naming`` relabels the blank nodes of its document."""
    subject, predicate, item, graph = quad
    name = DEFAULT if isinstance(graph, ox.DefaultGraph) else naming.term(graph)
    # The usual triple has no blank nodes, so the table of labels is not needed.
    if isinstance(subject, ox.NamedNode) and isinstance(item, ox.NamedNode | ox.Literal):
        return str(subject), str(predicate), str(item), name
    return (*naming.triple(quad), name)


Key = TypeVar("Key", bound=Hashable)


class HasSize(Protocol):
    """A value with an estimate of its memory."""

    @property
    def size(self) -> int:
        """Approximate bytes of memory."""


Value = TypeVar("Value", bound=HasSize)


class SizedCache(Generic[Key, Value]):
    """A least recently used cache of at most ``capacity`` bytes; values above ``capacity / share`` are not cached."""

    def __init__(self, capacity: int = 64 * 2**20, share: int = 8) -> None:
        self._capacity, self._share, self.size = capacity, share, 0
        self._kept: OrderedDict[Key, Value] = OrderedDict()

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, key: Key) -> Value | None:
        """The value of a key, ``None`` if absent; a lookup counts as use."""
        value = self._kept.get(key)
        if value is not None:
            self._kept.move_to_end(key)
        return value

    def put(self, key: Key, value: Value) -> None:
        """Set the value of a key, and evict the least recently used beyond the capacity."""
        # First, so that the old value's size is subtracted, also where the new one is too large to be kept.
        self.drop(key)
        size = value.size
        # One huge page would evict hundreds of small ones.
        if size * self._share > self._capacity:
            return
        self._kept[key] = value
        self.size += size
        while self.size > self._capacity:
            self.drop(next(iter(self._kept)))

    def drop(self, key: Key) -> None:
        """Remove the value of a key, if it has one."""
        value = self._kept.pop(key, None)
        if value is not None:
            self.size -= value.size

    def clear(self) -> None:
        """Remove all values from the cache."""
        self._kept.clear()
        self.size = 0


def form_value(term: Term) -> str:
    """A term in Hydra's explicit representation (5.2): an IRI bare, a literal quoted, without escapes or brackets."""
    if term == DEFAULT:
        return DEFAULT_IRI[1:-1]
    if term.startswith("<<"):
        return term
    if not is_literal(term):
        return plain(term)
    # The last quote ends the text: a language tag or a datatype has none.
    rest = term[term.rfind('"') + 1 :]
    return f'"{plain(term)}"{f"^^{rest[3:-1]}" if rest.startswith("^^") else rest}'
