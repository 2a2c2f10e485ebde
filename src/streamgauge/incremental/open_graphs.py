"""GRAPH over named graphs that come and go: pushed down to the triple patterns, the graph's name a column of theirs.

``GRAPH ?g { ?s :p ?v OPTIONAL { ?s :q ?w } }`` becomes ``LeftJoin(Graph(?g, ?s :p ?v), Graph(?g, ?s :q ?w))``: both
sides bind ?g, so they are joined within one graph (SPARQL 1.1, 18.6), whatever graphs there are. A group that needs no
triple is joined with the names of the graphs that there are, ``Graph(?g, {})``. Where ?g occurs inside, or MINUS does,
the column has a name of its own, as ?g is unbound inside and is no variable that the sides of a MINUS share.
"""

from dataclasses import dataclass, field
from functools import partial
from itertools import count

from streamgauge.incremental.correlation import bound, mentions, scope
from streamgauge.incremental.normal import UnsupportedError
from streamgauge.model import algebra as al
from streamgauge.model.terms import Term
from streamgauge.query.rebuild import every_pattern, expression_parts, parts, with_pattern

HIDDEN = ".graph"
"""How the names begin of columns for graphs that a query does not name."""


def opened(form: al.QueryForm) -> al.QueryForm:
    """The form with every GRAPH pushed down; only ``Graph`` of a name or variable over a BGP is left.

    UnsupportedError names what is not evaluated inside ``GRAPH ?g``. The same object when there is no GRAPH.
    """
    if not any(isinstance(pattern, al.Graph) for pattern in every_pattern(form.pattern)):
        return form
    return with_pattern(form, _Opening().push(form.pattern, None))


@dataclass
class _Opening:
    """One query; ``numbers`` are for columns of its own."""

    numbers: "count[int]" = field(default_factory=count)

    def push(self, pattern: al.Pattern, graph: al.Node | None) -> al.Pattern:
        """The pattern evaluated with this active graph: the default graph (``None``), one by its name, or every one."""
        match pattern:
            case al.BGP():
                return self._block(pattern, graph)
            case al.Graph(name=name, pattern=inner):
                found = self._every(name, inner) if isinstance(name, al.Var) else self._named(name, inner)
                return al.Join(found, _names(graph)) if isinstance(graph, al.Var) else found
            case al.Values() if isinstance(graph, al.Var):
                return al.Join(pattern, _names(graph))
        below = partial(self.push, graph=graph)
        pushed = parts(pattern, below, partial(_inside, below=below))
        return _carrying(pushed, graph) if isinstance(graph, al.Var) else pushed

    def _block(self, block: al.BGP, graph: al.Node | None) -> al.Pattern:
        if graph is None or (isinstance(graph, str) and not block.patterns):
            return block
        if isinstance(graph, al.Var) and any(_repeats(triple.predicate) for triple in block.patterns):
            raise UnsupportedError("a property path with *, + or ? inside GRAPH ?variable: name the graph")
        return al.Graph(graph, block)

    def _every(self, name: al.Var, inner: al.Pattern) -> al.Pattern:
        """``GRAPH ?name { inner }``."""
        occurs = name.name in mentions(inner)
        if not occurs and not any(isinstance(each, al.Minus) for each in every_pattern(inner)):
            return self.push(inner, name)
        own = self._own()
        pushed = self.push(inner, own)
        if name.name not in scope(inner):
            return al.Extend(pushed, name, own)
        if name.name not in bound(inner):
            raise UnsupportedError(f"GRAPH ?{name.name} whose group may bind ?{name.name}: use another variable in it")
        return al.Filter(al.Call("SAMETERM", (name, own)), pushed)

    def _named(self, name: Term, inner: al.Pattern) -> al.Pattern:
        """``GRAPH <name> { inner }``: nothing where no such graph is there."""
        pushed = self.push(inner, name)
        if _needs_triple(inner):
            return pushed
        own = self._own()
        return al.Join(al.Join(_names(own), al.Values((own,), ((name,),))), pushed)

    def _own(self) -> al.Var:
        return al.Var(f"{HIDDEN}{next(self.numbers)}")


def _names(graph: al.Var) -> al.Pattern:
    """The names of the graphs that there are."""
    return al.Graph(graph, al.BGP(()))


def _inside(tree: al.Expression, below: partial[al.Pattern]) -> al.Expression:
    """The expression, patterns of its EXISTS pushed."""
    return expression_parts(tree, below, partial(_inside, below=below))


def _carrying(pattern: al.Pattern, graph: al.Var) -> al.Pattern:
    """A pattern inside ``GRAPH ?graph`` that says which graph its solutions are of."""
    match pattern:
        case al.Project(pattern=inner, variables=variables):
            return al.Project(inner, (*variables, graph))
        case al.Group(pattern=inner, keys=keys, aggregates=aggregates):
            if not keys:
                raise UnsupportedError("an aggregate without GROUP BY inside GRAPH ?variable: group by it outside")
            return al.Group(inner, (*keys, (graph, graph)), aggregates)
        case _:
            return pattern


def _repeats(path: object) -> bool:
    """Whether a property path has ``*``, ``+`` or ``?`` anywhere in it."""
    match path:
        case al.Repeat():
            return True
        case al.Inverse(path=inner):
            return _repeats(inner)
        case al.Sequence(steps=some) | al.Alternative(choices=some):
            return any(map(_repeats, some))
        case _:
            return False


def _needs_triple(pattern: al.Pattern) -> bool:
    """Whether every solution takes a triple of the active graph."""
    match pattern:
        case al.BGP(patterns=patterns):
            return any(not _repeats(triple.predicate) for triple in patterns)
        case al.Join(left=left, right=right):
            return _needs_triple(left) or _needs_triple(right)
        case al.Union(left=left, right=right):
            return _needs_triple(left) and _needs_triple(right)
        case al.LeftJoin(left=inner) | al.Minus(left=inner):
            return _needs_triple(inner)
        case al.Group(pattern=inner, keys=keys):
            return bool(keys) and _needs_triple(inner)
        case al.Values() | al.Graph():
            return False
        case _:
            return _needs_triple(pattern.pattern)
