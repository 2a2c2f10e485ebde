"""Queries for which pyoxigraph's answer is not known to be SPARQL 1.1's, so that it gives no second opinion.

The choice has two parts: ``shape_gap`` looks at the query, ``ContentGaps`` at the literals of the query and of each
content.

1. **Shapes.** Only the operators and functions listed here, and none of the shapes that pyoxigraph is known to answer
   otherwise: anything but a basic graph pattern below ``GRAPH ?variable`` or in EXISTS, LIMIT, paths of length zero,
   variables of a FILTER that its group does not bind.
2. **Lexical forms.** The store keeps values. It may still be asked while every stored form stands for one literal of
   the content and the query, and the query reads no lexical form: then sameTerm, joins, DISTINCT and GROUP BY see the
   same differences, and the literals that plain variables are bound to are put back in the answer (``Forms``).
3. **Values.** Where the query compares or computes, only literals that pyoxigraph computes with exactly: numbers within
   bounds that no result of the query leaves 64 bits or 18 digits, dateTimes that all have a zone or all have none.

A content in which ``"1"^^xsd:integer`` and ``"01"^^xsd:integer`` both are has two literals with one stored form: no
second opinion; over a content with ``"76.0"^^xsd:float`` alone its ``"76"`` is put back.
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import partial, reduce
from operator import or_
from typing import Final

from streamgauge.model import algebra as al
from streamgauge.model.terms import XSD, Term, is_literal
from streamgauge.query.traversal import children, every_expression, every_pattern, expressions

COMPARING: Final = frozenset({"=", "!=", "<", ">", "<=", ">=", "IN", "!", "&&", "||", "IF", "+", "-", "*"})
READING: Final = frozenset({"STR", "STRSTARTS", "STRENDS", "CONTAINS"})
_ARITHMETIC: Final = frozenset({"+", "-", "*"})
_DOUBLE: Final = f"^^<{XSD}double>"
_ROWS_BITS: Final = 30
"""SUM is taken to be over at most 2^30 solutions."""


@dataclass(frozen=True, slots=True)
class NumberSize:
    """A bound of what a query computes, linear in its operands: ``factor`` times their size, and ``more`` bits.

    ``?x * ?x + 1`` over operands of b bits has at most 2 b + 1 of them, and twice as many digits after the point.
    """

    factor: int = 1
    more: int = 0

    def __or__(self, other: "NumberSize") -> "NumberSize":
        return NumberSize(max(self.factor, other.factor), max(self.more, other.more))


@dataclass(frozen=True, slots=True)
class QueryTraits:
    """The traits of a query form.

    ``constants`` are its literals, ``computed_constants`` those that arithmetic reads. ``reads_forms`` says that an
    answer may depend on a lexical form, ``reads_datatypes`` on the name of a datatype, ``compares`` on values,
    ``computes`` on arithmetic, ``averages`` on division,
    ``extremes`` on MIN or MAX, which may give any of several equal values.
    ``inline`` are the literals of VALUES, ``sizes`` bound the numbers that the query computes and that are no
    xsd:double, ``magnitudes`` those that are too, ``plain_columns`` are those whose terms are not computed.
    """

    constants: frozenset[Term]
    computed_constants: frozenset[Term]
    reads_forms: bool
    reads_datatypes: bool
    compares: bool
    computes: bool
    averages: bool
    extremes: bool
    inline: frozenset[Term]
    sizes: frozenset[NumberSize]
    magnitudes: frozenset[NumberSize]
    plain_columns: tuple[bool, ...]

    def bits(self, operand: int) -> int:
        """The bits of the largest result that is not an xsd:double, over operands of so many bits."""
        return max(size.factor * operand + size.more for size in self.sizes)

    def magnitude(self, operand: int) -> int:
        """The bits of the largest result of any datatype, over operands of so many bits."""
        return max(size.factor * operand + size.more for size in self.magnitudes)

    def digits(self, operand: int) -> int:
        """The digits after the point of the longest result over operands with so many."""
        return max(size.factor * operand for size in self.sizes)


def traits(form: al.QueryForm) -> QueryTraits:
    """The traits of a form."""
    patterns = list(every_pattern(form.pattern))
    trees = [tree for pattern in patterns for tree in expressions(pattern)]
    calls = [part for tree in trees for part in every_expression(tree) if isinstance(part, al.Call)]
    operators = {call.operator.upper() for call in calls}
    functions = {
        item.function for pattern in patterns if isinstance(pattern, al.Group) for _, item in pattern.aggregates
    }
    origins = _origins(patterns)
    mixed = any(len(kinds) > 1 for kinds in origins.values())
    return QueryTraits(
        constants=frozenset(_constants(form, patterns, trees)),
        computed_constants=frozenset(_computed_constants(calls)),
        reads_forms=bool(operators & READING) or mixed or _tests_computed(calls, origins),
        reads_datatypes="DATATYPE" in operators,
        compares=bool(
            operators & COMPARING or "ABS" in operators or functions & {"SUM", "AVG", "MIN", "MAX"} or _orders(patterns)
        ),
        computes=bool(operators & _ARITHMETIC or functions & {"SUM", "AVG"}),
        averages="AVG" in functions,
        extremes=bool(functions & {"MIN", "MAX"}),
        inline=frozenset(cell for cell in _inline(patterns) if is_literal(cell)),
        sizes=frozenset(_sizes(patterns, trees, doubles=False)),
        magnitudes=frozenset(_sizes(patterns, trees, doubles=True)),
        plain_columns=_plain_columns(form, origins),
    )


def _orders(patterns: list[al.Pattern]) -> bool:
    """Whether ORDER BY compares, or a FILTER takes the effective boolean value of a variable."""
    conditions = (pattern.condition for pattern in patterns if isinstance(pattern, al.Filter | al.LeftJoin))
    return any(isinstance(pattern, al.OrderBy) for pattern in patterns) or any(
        isinstance(condition, al.Var) for condition in conditions
    )


def _constants(form: al.QueryForm, patterns: list[al.Pattern], trees: list[al.Expression]) -> Iterator[Term]:
    parts = (part for tree in trees for part in every_expression(tree))
    triples = [triple for pattern in patterns if isinstance(pattern, al.BGP) for triple in pattern.patterns]
    if isinstance(form, al.Construct):
        triples += form.template
    for node in (*parts, *(triple.object for triple in triples), *_inline(patterns)):
        if isinstance(node, str) and is_literal(node):
            yield node


def _inline(patterns: list[al.Pattern]) -> Iterator[Term]:
    cells = (cell for pattern in patterns if isinstance(pattern, al.Values) for row in pattern.rows for cell in row)
    return (cell for cell in cells if cell is not None)


def _computed_constants(calls: list[al.Call]) -> Iterator[Term]:
    for call in calls:
        if call.operator in _ARITHMETIC:
            yield from (part for part in every_expression(call) if isinstance(part, str) and is_literal(part))


# Where the terms of a variable come from


def _origins(patterns: list[al.Pattern]) -> dict[al.Var, set[bool]]:
    """For each variable whether its terms are computed: ``False`` for those of the data or query, or both."""
    results: dict[al.Var, set[bool]] = {}
    for pattern in patterns:
        for variable in _binds(pattern):
            results.setdefault(variable, set()).add(False)
    assignments = [pair for pattern in patterns for pair in _assigns(pattern)]
    changed = True
    while changed:
        changed = False
        for variable, value in assignments:
            before = results.setdefault(variable, set())
            after = before | _origin(value, results)
            changed |= after != before
            results[variable] = after
    return results


def _binds(pattern: al.Pattern) -> tuple[al.Var, ...]:
    match pattern:
        case al.BGP() | al.Values():
            return al.pattern_variables(pattern)
        case al.Graph(name=al.Var() as name):
            return (name,)
        case _:
            return ()


def _assigns(pattern: al.Pattern) -> Iterator[tuple[al.Var, al.Expression | al.Aggregate]]:
    match pattern:
        case al.Extend(variable=variable, expression=value):
            yield variable, value
        case al.Group(keys=keys, aggregates=aggregates):
            yield from ((variable, key) for variable, key in keys if variable != key)
            yield from aggregates


def _origin(value: al.Expression | al.Aggregate, known: dict[al.Var, set[bool]]) -> set[bool]:
    match value:
        case al.Aggregate(function="MIN" | "MAX" | "SAMPLE", argument=argument) if argument is not None:
            return _origin(argument, known)
        case al.Var():
            return known.get(value, set())
        case al.Call(operator="COALESCE", arguments=arguments):
            return set[bool]().union(*(_origin(argument, known) for argument in arguments))
        case al.Call(operator="IF", arguments=(_, *branches)):
            return set[bool]().union(*(_origin(branch, known) for branch in branches))
        case str():
            return {False}
        case _:
            return {True}


def _tests_computed(calls: list[al.Call], origins: dict[al.Var, set[bool]]) -> bool:
    """Whether sameTerm looks at a computed term."""
    tested = (argument for call in calls if call.operator.upper() == "SAMETERM" for argument in call.arguments)
    return any(True in _origin(item, origins) for item in tested)


def _plain_columns(form: al.QueryForm, origins: dict[al.Var, set[bool]]) -> tuple[bool, ...]:
    match form:
        case al.Select(variables=names):
            return tuple(True not in origins.get(al.Var(name), ()) for name in names)
        case al.Construct(template=template):
            nodes = [triple.object for triple in template]
            computed = any(isinstance(node, al.Var) and True in origins.get(node, ()) for node in nodes)
            return (True, True, not computed)
        case al.Ask():
            return (False,)


# How large computed numbers are


def _sizes(patterns: list[al.Pattern], trees: list[al.Expression], *, doubles: bool) -> Iterator[NumberSize]:
    """Bounds of every number that the query computes, those of datatype xsd:double only where ``doubles`` says so."""
    assignments = [pair for pattern in patterns for pair in _assigns(pattern)]
    known = {variable: NumberSize(0) for variable, _ in assignments}
    known |= {variable: NumberSize() for pattern in patterns for variable in _binds(pattern)}
    size = partial(_size, doubles=doubles)
    for _ in range(len(assignments) + 1):
        for variable, value in assignments:
            known[variable] |= size(value, known)
    yield NumberSize()
    yield from (size(tree, known) for tree in trees)
    yield from (size(value, known) for _, value in assignments)


def _is_double(value: al.Expression) -> bool:
    """Whether a value is an xsd:double or an error: arithmetic with a double rounds and never leaves its bounds."""
    match value:
        case str():
            return value.endswith(_DOUBLE)
        case al.Call(operator="+" | "-" | "*" | "ABS", arguments=arguments):
            return any(map(_is_double, arguments))
        case al.Call(operator="IF", arguments=(_, *branches)):
            return all(map(_is_double, branches))
        case _:
            return False


def _size(value: al.Expression | al.Aggregate, known: dict[al.Var, NumberSize], *, doubles: bool) -> NumberSize:
    size = partial(_size, known=known, doubles=doubles)
    match value:
        case al.Call(arguments=arguments) if not doubles and _is_double(value):
            return reduce(
                or_, (size(argument) for argument in arguments if not isinstance(argument, str)), NumberSize(0)
            )
        case al.Aggregate(argument=None) | al.Aggregate(function="COUNT"):
            return NumberSize(0, _ROWS_BITS)
        case al.Aggregate(function="SUM" | "AVG", argument=argument) if argument is not None:
            inner = size(argument)
            return NumberSize(inner.factor, inner.more + _ROWS_BITS)
        case al.Aggregate(argument=argument) if argument is not None:
            return size(argument)
        case al.Var():
            return known.get(value, NumberSize())
        case al.Call(operator="*", arguments=(left, right)):
            one, two = size(left), size(right)
            return NumberSize(one.factor + two.factor, one.more + two.more)
        case al.Call(operator="+" | "-", arguments=arguments):
            widest = NumberSize(0)
            for entry in arguments:
                widest |= size(entry)
            return NumberSize(widest.factor, widest.more + 1)
        case al.Call(arguments=arguments):
            widest = NumberSize()
            for entry in arguments:
                widest |= size(entry)
            return widest
        case _:
            return NumberSize()


_TRUSTED: Final = (
    COMPARING | READING | {"BOUND", "COALESCE", "ISIRI", "ISBLANK", "ISLITERAL", "SAMETERM", "ABS", "DATATYPE"}
)
_AGGREGATES: Final = frozenset({"COUNT", "SUM", "AVG", "MIN", "MAX"})


def shape_gap(form: al.QueryForm, graphs: Collection[Term], occurrences: bool) -> str | None:
    """The part of a query for which pyoxigraph is not asked, whatever the content; ``None`` when there is none.

    ``graphs`` are the names of the dataset's graphs. ``occurrences`` says that each copy of a triple matches by itself.
    """
    for pattern in every_pattern(form.pattern):
        if reason := _pattern_gap(pattern, graphs, occurrences):
            return reason
        for tree in expressions(pattern):
            if reason := _expression_gap(tree, pattern, occurrences):
                return reason
    return None


def _pattern_gap(pattern: al.Pattern, graphs: Collection[Term], occurrences: bool) -> str | None:
    match pattern:
        case al.Slice():
            return "LIMIT or OFFSET"
        case al.Graph(name=al.Var(), pattern=inner) if not _is_plain_block(inner):
            return "more than triple patterns in GRAPH ?variable"
        case al.Graph(name=str() as name) if name not in graphs:
            return "GRAPH with a name that no graph has"
        case al.Graph(pattern=inner) if any(isinstance(item, al.Graph) for item in every_pattern(inner)):
            return "GRAPH in GRAPH"
        case al.BGP(patterns=patterns) if any(_is_open_path(pattern.predicate) for pattern in patterns):
            return "a path that may be of length zero"
        case al.Group(pattern=inner, aggregates=aggregates):
            hidden = any(map(_is_hidden, al.pattern_variables(inner))) or any(map(_has_sequence, every_pattern(inner)))
            return _aggregates_gap([item for _, item in aggregates], occurrences, hidden)
        case _:
            return None


def _aggregates_gap(aggregates: Iterable[al.Aggregate], occurrences: bool, hidden: bool) -> str | None:
    for aggregate in aggregates:
        if aggregate.function not in _AGGREGATES:
            return aggregate.function
        if aggregate.argument is None and aggregate.distinct and occurrences:
            return "COUNT(DISTINCT *) over a content that is a bag"
        if aggregate.argument is None and aggregate.distinct and hidden:
            return "COUNT(DISTINCT *) over blank nodes of the pattern, which are no part of a solution (18.3.1)"
    return None


def _expression_gap(tree: al.Expression, pattern: al.Pattern, occurrences: bool) -> str | None:
    visible = {variable for child in children(pattern) for variable in al.pattern_variables(child)}
    for part in every_expression(tree):
        match part:
            case al.Call(operator=operator) if operator.upper() not in _TRUSTED:
                return operator
            case al.Call(operator="<" | ">" | "<=" | ">=", arguments=arguments) if any(map(_is_choice, arguments)):
                return "an order of values that IF or COALESCE chooses"
            case al.Call(operator="<" | ">" | "<=" | ">=", arguments=arguments) if any(map(_is_resource, arguments)):
                return "an order of IRIs"
            case al.Exists(pattern=inner) if occurrences or not _is_plain_block(inner):
                return "EXISTS with more than triple patterns"
            case al.Exists() if not isinstance(pattern, al.Filter):
                return "EXISTS in a value"
            case al.Var() if part not in visible:
                return "an expression over a variable that its group does not bind"
    return None


def _is_choice(tree: al.Expression) -> bool:
    """A value that may be a resource, and is not a variable: ``restated`` cannot test it."""
    return isinstance(tree, al.Call) and tree.operator.upper() in ("IF", "COALESCE")


def _is_resource(tree: al.Expression) -> bool:
    """A constant that "<" compares with nothing: pyoxigraph has <urn:a> >= <urn:a>."""
    return isinstance(tree, str) and tree.startswith("<")


def _is_hidden(variable: al.Var) -> bool:
    """A variable that stands for a blank node of a pattern, or for the middle of a path."""
    return variable.name.startswith(("_:", "."))


def _has_sequence(pattern: al.Pattern) -> bool:
    """Whether a block has a path with a sequence in it: ``restated`` gives its middle a variable."""
    return isinstance(pattern, al.BGP) and any(_is_in_sequence(pattern.predicate) for pattern in pattern.patterns)


def _is_in_sequence(path: al.Node | al.Path) -> bool:
    match path:
        case al.Sequence():
            return True
        case al.Repeat(path=inner) | al.Inverse(path=inner):
            return _is_in_sequence(inner)
        case al.Alternative(choices=choices):
            return any(map(_is_in_sequence, choices))
        case _:
            return False


def _is_plain_block(pattern: al.Pattern) -> bool:
    """A basic graph pattern without paths."""
    return isinstance(pattern, al.BGP) and all(
        isinstance(pattern.predicate, al.Var | str) for pattern in pattern.patterns
    )


def _is_open_path(path: al.Node | al.Path) -> bool:
    """Whether some part of a path may be of length zero."""
    match path:
        case al.Repeat(path=inner, modifier=modifier):
            return modifier != "+" or _is_open_path(inner)
        case al.Inverse(path=inner):
            return _is_open_path(inner)
        case al.Sequence(steps=parts) | al.Alternative(choices=parts):
            return any(map(_is_open_path, parts))
        case _:
            return False
