"""Where pyoxigraph's answer is not known to be SPARQL 1.1's: there the definition evaluates the algebra itself.

pyoxigraph is asked for what it is proven on (``tests/semantics/test_pyoxigraph_gaps.py``), everything else is evaluated
by ``streamgauge.sparql``. The choice has two parts: ``shape_gap`` looks at the query, ``ContentGaps`` at the literals
of the query and of each content.

1. **Shapes.** Only the operators and functions listed here, and none of the shapes that pyoxigraph is known to answer
   otherwise: anything but a basic graph pattern below ``GRAPH ?variable`` or in EXISTS, LIMIT, paths of length zero,
   variables of a FILTER that its group does not bind.
2. **Lexical forms.** The store keeps values. It may still be asked while every stored form stands for one literal of
   the content and the query, and the query reads no lexical form: then sameTerm, joins, DISTINCT and GROUP BY see the
   same differences, and the literals that plain variables are bound to are put back in the answer (``Forms``).
3. **Values.** Where the query compares or computes, only literals that pyoxigraph computes with exactly: numbers within
   bounds that no result of the query leaves 64 bits or 18 digits, dateTimes that all have a zone or all have none.

A content in which ``"1"^^xsd:integer`` and ``"01"^^xsd:integer`` both are has two literals with one stored form, so the
algebra is evaluated; a content with ``"76.0"^^xsd:float`` alone is pyoxigraph's, and its ``"76"`` is put back.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final, TypeAlias

from streamgauge.model import algebra as al
from streamgauge.model.terms import Term, datatype, is_literal
from streamgauge.query.traversal import children, every_expression, every_pattern, expressions
from streamgauge.semantics.query_traits import COMPARING, READING, QueryTraits, traits
from streamgauge.semantics.stored_terms import LIMIT, LiteralKind, StoredLiteral, stored_literals
from streamgauge.sparql.comparison import value_key
from streamgauge.sparql.values import read, single

_ORDERED: Final = frozenset(
    {LiteralKind.INTEGER, LiteralKind.DECIMAL, LiteralKind.FLOATING, LiteralKind.ZONED, LiteralKind.LOCAL}
)
"""Kinds of which two different terms may have equal values that pyoxigraph keeps apart."""

Forms: TypeAlias = Mapping[Term, Term]
"""Literals of a content by their stored form, as far as the two differ."""

_BOUNDED: Final = 62
_EXPONENT: Final = 1_000
"""Bits of the largest finite xsd:double are 1,024; infinities and NaN compare otherwise in pyoxigraph."""
_DIGITS: Final = 18
_PROMOTED: Final = 53
_TRUSTED: Final = (
    COMPARING | READING | {"BOUND", "COALESCE", "ISIRI", "ISBLANK", "ISLITERAL", "SAMETERM", "ABS", "DATATYPE"}
)
_AGGREGATES: Final = frozenset({"COUNT", "SUM", "AVG", "MIN", "MAX"})


VOLATILE: Final = frozenset({"RAND", "NOW", "UUID", "STRUUID"})
"""Functions whose value is another one each time; only pyoxigraph has them."""


def volatile(form: al.QueryForm) -> str | None:
    """The sentence that names a function of a query that gives another value each time, ``None`` without one."""
    for pattern in every_pattern(form.pattern):
        for part in (part for tree in expressions(pattern) for part in every_expression(tree)):
            if isinstance(part, al.Call) and part.operator.upper() in VOLATILE:
                return f"{part.operator}() gives another value each time, so no answer can be compared: bind a constant"
    return None


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
        case al.Graph(pattern=inner) if any(isinstance(each, al.Graph) for each in every_pattern(inner)):
            return "GRAPH in GRAPH"
        case al.BGP(patterns=patterns) if any(_is_open_path(each.predicate) for each in patterns):
            return "a path that may be of length zero"
        case al.Group(pattern=inner, aggregates=aggregates):
            hidden = any(map(_is_hidden, al.pattern_variables(inner))) or any(map(_has_sequence, every_pattern(inner)))
            return _aggregates_gap([each for _, each in aggregates], occurrences, hidden)
        case _:
            return None


def _aggregates_gap(aggregates: Iterable[al.Aggregate], occurrences: bool, hidden: bool) -> str | None:
    for each in aggregates:
        if each.function not in _AGGREGATES:
            return each.function
        if each.argument is None and each.distinct and occurrences:
            return "COUNT(DISTINCT *) over a content that is a bag"
        if each.argument is None and each.distinct and hidden:
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
    """A value that may be a resource, and is no variable: ``restated`` cannot test it."""
    return isinstance(tree, al.Call) and tree.operator.upper() in ("IF", "COALESCE")


def _is_resource(tree: al.Expression) -> bool:
    """A constant that "<" compares with nothing: pyoxigraph has <urn:a> >= <urn:a>."""
    return isinstance(tree, str) and tree.startswith("<")


def _is_hidden(variable: al.Var) -> bool:
    """A variable that stands for a blank node of a pattern, or for the middle of a path."""
    return variable.name.startswith(("_:", "."))


def _has_sequence(pattern: al.Pattern) -> bool:
    """Whether a block has a path with a sequence in it: ``restated`` gives its middle a variable."""
    return isinstance(pattern, al.BGP) and any(_is_in_sequence(each.predicate) for each in pattern.patterns)


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
    return isinstance(pattern, al.BGP) and all(isinstance(each.predicate, al.Var | str) for each in pattern.patterns)


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


def undefined(form: al.QueryForm) -> str | None:
    """The sentence that names a part of a query that SPARQL 1.1 leaves undefined, ``None`` when there is none."""
    for name in _assigned_outside(form.pattern, frozenset()):
        return (
            f"EXISTS computes ?{name}, which the pattern around it binds: SPARQL 1.1 does not define it (18.6); name "
            "the inner variable differently"
        )
    return None


def _assigned_outside(pattern: al.Pattern, around: frozenset[al.Var]) -> Iterator[str]:
    below = children(pattern)
    outer = around.union(*map(al.pattern_variables, below))
    for part in (part for tree in expressions(pattern) for part in every_expression(tree)):
        if isinstance(part, al.Exists):
            yield from (variable.name for variable in _assigned(part.pattern) if variable in outer)
            yield from _assigned_outside(part.pattern, outer)
    for child in below:
        yield from _assigned_outside(child, around)


def _assigned(pattern: al.Pattern) -> Iterator[al.Var]:
    """The variables that a pattern computes and shows: BIND, SELECT expressions, keys of groups."""
    match pattern:
        case al.Extend(variable=variable):
            yield variable
        case al.Group(keys=keys):
            yield from (variable for variable, key in keys if variable != key)
    shown = frozenset(pattern.variables) if isinstance(pattern, al.Project) else None
    for child in children(pattern):
        yield from (variable for variable in _assigned(child) if shown is None or variable in shown)


def _value(term: Term) -> tuple[Any, ...]:
    """A key that is the same for equal values: of numbers as xsd:float, of dateTimes by their instant."""
    value = read(term)
    if isinstance(value.value, int | float | Decimal):
        return "number", single(float(value.value))
    return value_key(value)


@dataclass(slots=True)
class _Seen:
    """The literals that have been looked at, and which of them matter to the choice."""

    all: set[Term]
    refused: set[Term]
    zoned: set[Term]
    local: set[Term]
    divided: set[Term]
    fractions: set[Term]
    floating: set[Term]
    first: dict[Term, Term]
    clashing: set[Term]
    raw: dict[Term, Term]
    equals: dict[tuple[Any, ...], set[Term]]
    twins: set[Term]

    @classmethod
    def nothing(cls) -> "_Seen":
        return cls(set(), set(), set(), set(), set(), set(), set(), {}, set(), {}, {}, set())


class ContentGaps:
    """Which contents pyoxigraph is asked about, for one query of a shape that it is asked for.

    Literals are looked at once; a content costs one difference of sets and a few tests for disjoint ones.
    """

    def __init__(self, form: al.QueryForm) -> None:
        self._traits: QueryTraits = traits(form)
        self._constants = frozenset(self._traits.constants)
        self._seen = _Seen.nothing()

    @property
    def plain_columns(self) -> tuple[bool, ...]:
        """Which columns of the answer hold terms of the content or the query as they are, not computed ones."""
        return self._traits.plain_columns

    @property
    def compares(self) -> bool:
        """Whether the answer depends on values."""
        return self._traits.compares

    def forms(self, literals: Set[Term]) -> Forms | None:
        """The literals to put back in pyoxigraph's answer over these literals; ``None``: do not ask pyoxigraph."""
        if len(self._seen.all) > LIMIT:
            self._seen = _Seen.nothing()
        fresh = literals - self._seen.all
        if not self._seen.all:
            fresh |= self._constants
        if fresh:
            self._learn(fresh)
        if self._differs(literals):
            return None
        return self._forms(literals)

    def _learn(self, fresh: Set[Term]) -> None:
        seen = self._seen
        seen.all |= fresh
        for term, known in stored_literals(sorted(fresh)).items():
            if self._refuses(term, known):
                seen.refused.add(term)
                continue
            assert known.form is not None
            other = seen.first.setdefault(known.form, term)
            if other != term:
                seen.clashing |= {other, term}
            elif known.form != term:
                seen.raw[known.form] = term
            self._sort(term, known)
            if self._traits.extremes and known.kind in _ORDERED:
                self._pair(term)

    def _pair(self, term: Term) -> None:
        """Note literals of equal values: MIN and MAX give any of them (18.5.1.4 leaves open which)."""
        alike = self._seen.equals.setdefault(_value(term), set())
        alike.add(term)
        if len(alike) > 1:
            self._seen.twins |= alike

    def _sort(self, term: Term, known: StoredLiteral) -> None:
        seen = self._seen
        match known.kind:
            case LiteralKind.ZONED:
                seen.zoned.add(term)
            case LiteralKind.LOCAL:
                seen.local.add(term)
            case LiteralKind.FLOATING:
                seen.floating.add(term)
            case LiteralKind.INTEGER:
                seen.divided.add(term)
            case LiteralKind.DECIMAL:
                seen.divided.add(term)
                if known.digits:
                    seen.fractions.add(term)

    def _refuses(self, term: Term, known: StoredLiteral) -> bool:
        """Whether the literal alone decides that pyoxigraph is not asked."""
        has = self._traits
        if known.form is None or (known.form != term and has.reads_forms):
            return True
        if has.reads_datatypes and datatype(known.form) != datatype(term):
            return True
        if not has.compares:
            return False
        if known.kind is LiteralKind.OTHER or (known.kind is LiteralKind.INTEGER and known.bits > _PROMOTED):
            return True
        return (
            has.bits(known.bits) > _BOUNDED
            or has.magnitude(known.bits) > _EXPONENT
            or has.digits(known.digits) > _DIGITS
        )

    def _differs(self, literals: Set[Term]) -> bool:
        """Whether the literals together decide that pyoxigraph is not asked.

        A constant that the query only compares with is neither averaged nor added up, unless the content has it too.
        """
        seen, has = self._seen, self._traits
        if _meets(seen.refused, literals, self._constants):
            return True
        if not has.compares:
            return False
        if has.extremes and self._has_twins(literals):
            return True
        if has.averages and _meets(seen.divided, literals, has.inline):
            return True
        if _meets(seen.zoned, literals, self._constants) and _meets(seen.local, literals, self._constants):
            return True
        if not has.computes or not _meets(seen.floating, literals, self._constants):
            return False
        return _meets(seen.fractions, literals, has.inline | has.computed_constants)

    def _has_twins(self, literals: Set[Term]) -> bool:
        """Whether two of the literals, or of the query's, have equal values and are not the same term."""
        here = self._seen.twins & (literals | self._constants) if self._seen.twins else ()
        return len({_value(term) for term in here}) < len(here)

    def _forms(self, literals: Set[Term]) -> Forms | None:
        """The map from stored forms to literals, ``None`` when one stored form stands for two."""
        seen = self._seen
        if not seen.clashing:
            return seen.raw
        here = seen.clashing & (literals | self._constants)
        if not here:
            return seen.raw
        back: dict[Term, Term] = {}
        for term, known in stored_literals(here).items():
            assert known.form is not None
            if back.setdefault(known.form, term) != term:
                return None
        return {**seen.raw, **back}


def _meets(seen: Set[Term], literals: Set[Term], beside: Set[Term]) -> bool:
    """Whether some of the literals that have been seen are in a content or beside it."""
    return bool(seen) and not (seen.isdisjoint(literals) and seen.isdisjoint(beside))


def literals_of(triples: Iterable[tuple[Term, Term, Term]]) -> set[Term]:
    """The literals of some triples."""
    return {item for _, _, item in triples if is_literal(item)}
