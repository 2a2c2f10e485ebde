"""SPARQL 1.1 algebra as frozen dataclasses (https://www.w3.org/TR/sparql11-query/#sparqlAlgebra).

Equality ignores text and prefixes; blank nodes of a query are variables named ``_:0``, ``_:1``, ... in
order of first appearance. Constants are canonical N-Triples terms.
"""

from dataclasses import dataclass
from typing import TypeAlias

from streamgauge.model.terms import Row, Term


@dataclass(frozen=True, slots=True)
class Var:
    """A variable, name without the question mark; a query's blank node is a variable ``_:n``."""

    name: str


Node: TypeAlias = Var | Term


# Property paths: https://www.w3.org/TR/sparql11-query/#propertypaths
@dataclass(frozen=True, slots=True)
class Inverse:
    """Inverse path ``^path``: the pairs of the path, exchanged."""

    path: "Path"


@dataclass(frozen=True, slots=True)
class Sequence:
    """Sequence path ``path / path``, of two or more steps."""

    steps: tuple["Path", ...]


@dataclass(frozen=True, slots=True)
class Alternative:
    """Alternative path ``path | path``, of two or more choices."""

    choices: tuple["Path", ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """``path*``, ``path+`` or ``path?``, by ``modifier``."""

    path: "Path"
    modifier: str


@dataclass(frozen=True, slots=True)
class NegatedSet:
    """``!(p | ^q)``: any predicate but these, forward and backward."""

    forward: tuple[Term, ...]
    backward: tuple[Term, ...] = ()


Path: TypeAlias = Term | Inverse | Sequence | Alternative | Repeat | NegatedSet


@dataclass(frozen=True, slots=True)
class TriplePattern:
    """A triple pattern; ``predicate`` may be a property path."""

    subject: Node
    predicate: Node | Inverse | Sequence | Alternative | Repeat | NegatedSet
    object: Node


@dataclass(frozen=True, slots=True)
class GraphTriplePattern(TriplePattern):
    """A triple pattern in a named graph, in the template of an update."""

    graph: Node


# Expressions: https://www.w3.org/TR/sparql11-query/#expressions
@dataclass(frozen=True, slots=True)
class Call:
    """An operator (``=``, ``+``, ``&&``, ``!``, ``IN``), a built-in (``STR``, ``IF``) or a function ``<iri>``."""

    operator: str
    arguments: tuple["Expression", ...]


@dataclass(frozen=True, slots=True)
class Exists:
    """``EXISTS { pattern }``; ``NOT EXISTS`` is ``Call("!", (Exists(...),))``."""

    pattern: "Pattern"


Expression: TypeAlias = Var | Term | Call | Exists


@dataclass(frozen=True, slots=True)
class Aggregate:
    """``function`` is COUNT, SUM, AVG, MIN, MAX, SAMPLE or GROUP_CONCAT; ``argument`` is ``None`` for ``COUNT(*)``."""

    function: str
    argument: Expression | None
    distinct: bool = False
    separator: str = " "


# Patterns: https://www.w3.org/TR/sparql11-query/#sparqlAlgebra
@dataclass(frozen=True, slots=True)
class BGP:
    """A basic graph pattern."""

    patterns: tuple[TriplePattern, ...]


@dataclass(frozen=True, slots=True)
class Join:
    """Join(left, right): the merges of all compatible pairs of solutions."""

    left: "Pattern"
    right: "Pattern"


@dataclass(frozen=True, slots=True)
class LeftJoin:
    """OPTIONAL: LeftJoin(left, right, condition); ``condition`` is ``None`` for true."""

    left: "Pattern"
    right: "Pattern"
    condition: Expression | None = None


@dataclass(frozen=True, slots=True)
class Filter:
    """Filter(condition, pattern): the solutions with effective boolean value true."""

    condition: Expression
    pattern: "Pattern"


@dataclass(frozen=True, slots=True)
class Union:
    """Union(left, right): the solutions of both, with repetitions."""

    left: "Pattern"
    right: "Pattern"


@dataclass(frozen=True, slots=True)
class Minus:
    """Minus(left, right): left without solutions that share variables with, and are compatible to, one of right."""

    left: "Pattern"
    right: "Pattern"


@dataclass(frozen=True, slots=True)
class Extend:
    """BIND, or an expression in SELECT: Extend(pattern, variable, expression)."""

    pattern: "Pattern"
    variable: Var
    expression: Expression


@dataclass(frozen=True, slots=True)
class Values:
    """VALUES: inline solutions; ``None`` is UNDEF."""

    variables: tuple[Var, ...]
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class Graph:
    """``GRAPH name { pattern }``; for a window over a stream the name is the window's."""

    name: Node
    pattern: "Pattern"


@dataclass(frozen=True, slots=True)
class Group:
    """Grouping and aggregation in one: one row per key (one row for no keys), keys and aggregates as variables."""

    pattern: "Pattern"
    keys: tuple[tuple[Var, Expression], ...]
    aggregates: tuple[tuple[Var, Aggregate], ...]


@dataclass(frozen=True, slots=True)
class Project:
    """Projection to these variables, in this order."""

    pattern: "Pattern"
    variables: tuple[Var, ...]


@dataclass(frozen=True, slots=True)
class Distinct:
    """DISTINCT: each solution once."""

    pattern: "Pattern"


@dataclass(frozen=True, slots=True)
class Reduced:
    """REDUCED; evaluated as no change."""

    pattern: "Pattern"


@dataclass(frozen=True, slots=True)
class OrderBy:
    """ORDER BY; each key is (expression, descending)."""

    pattern: "Pattern"
    keys: tuple[tuple[Expression, bool], ...]


@dataclass(frozen=True, slots=True)
class Slice:
    """LIMIT and OFFSET; ``limit`` is ``None`` for all remaining solutions."""

    pattern: "Pattern"
    offset: int = 0
    limit: int | None = None


# A worked example, `SELECT DISTINCT ?x { ?x :p ?y FILTER(?y > 5) } LIMIT 10`, with datatypes and the fields' names
# left out:
#
#     Select(Slice(Distinct(Project(Filter(Call(">", (Var("y"), "5")), BGP((TriplePattern(Var("x"), ":p", Var("y")),))),
#                                   (Var("x"),))), 0, 10), ("x",))
Pattern: TypeAlias = (
    BGP
    | Join
    | LeftJoin
    | Filter
    | Union
    | Minus
    | Extend
    | Values
    | Graph
    | Group
    | Project
    | Distinct
    | Reduced
    | OrderBy
    | Slice
)


# Query forms: https://www.w3.org/TR/sparql11-query/#QueryForms
@dataclass(frozen=True, slots=True)
class Select:
    """SELECT; the outermost Project (below Distinct and Slice) names the columns."""

    pattern: Pattern
    variables: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Ask:
    """ASK: whether the pattern has a solution."""

    pattern: Pattern


@dataclass(frozen=True, slots=True)
class Construct:
    """CONSTRUCT; ``template`` is instantiated per solution."""

    template: tuple[TriplePattern, ...]
    pattern: Pattern


QueryForm: TypeAlias = Select | Ask | Construct


def graph_of(pattern: TriplePattern) -> Node | None:
    """The graph of a pattern in a template; ``None`` for the default graph."""
    return pattern.graph if isinstance(pattern, GraphTriplePattern) else None


def nodes_of(pattern: TriplePattern) -> tuple[Node, Node, Node]:
    """Subject, predicate and object of a pattern without a path; ValueError."""
    if not isinstance(pattern.predicate, Var | str):
        raise ValueError("a property path is not a triple pattern: normalise the query first")
    return pattern.subject, pattern.predicate, pattern.object


def triple_variables(pattern: TriplePattern) -> tuple[Var, ...]:
    """The distinct variables of a triple pattern, in order of position."""
    nodes = (pattern.subject, pattern.predicate, pattern.object)
    return tuple(dict.fromkeys(node for node in nodes if isinstance(node, Var)))


def expression_variables(expression: Expression) -> frozenset[Var]:
    """The variables that an expression reads, those of an EXISTS pattern included."""
    match expression:
        case Var():
            return frozenset({expression})
        case Call(arguments=arguments):
            return frozenset().union(*map(expression_variables, arguments))
        case Exists(pattern=pattern):
            return frozenset(pattern_variables(pattern))
        case _:
            return frozenset()


def pattern_variables(pattern: Pattern) -> tuple[Var, ...]:
    """The in-scope variables of a pattern (SPARQL 1.1, 18.2.1), in order of first appearance."""
    match pattern:
        case BGP(patterns=patterns):
            return tuple(dict.fromkeys(var for triple in patterns for var in triple_variables(triple)))
        case Join(left=left, right=right) | LeftJoin(left=left, right=right) | Union(left=left, right=right):
            return tuple(dict.fromkeys(pattern_variables(left) + pattern_variables(right)))
        case Extend(pattern=inner, variable=variable):
            return tuple(dict.fromkeys((*pattern_variables(inner), variable)))
        case Graph(name=name, pattern=inner):
            own = (name,) if isinstance(name, Var) else ()
            return tuple(dict.fromkeys(own + pattern_variables(inner)))
        case Group(keys=keys, aggregates=aggregates):
            return tuple(var for var, _ in (*keys, *aggregates))
        case Values(variables=variables) | Project(variables=variables):
            return variables
        # The right side binds nothing outside.
        case Minus(left=inner):
            return pattern_variables(inner)
        case Filter(pattern=inner) | Distinct(pattern=inner) | Reduced(pattern=inner) | OrderBy(pattern=inner):
            return pattern_variables(inner)
        case Slice(pattern=inner):
            return pattern_variables(inner)
