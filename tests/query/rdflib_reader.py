"""SPARQL text as algebra by rdflib's parser: another reader, which ``streamgauge.query.reader`` is held to.

Every IRI, string and number goes to rdflib as a place in a table and comes back from there: so prefixes, relative IRIs,
escapes, lexical forms and the inverse members of ``!(...)``, which rdflib loses, stay as they were written.
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any, Final

from pyparsing import ParseBaseException
from rdflib.plugins.sparql.parser import parseQuery
from rdflib.term import BNode, Literal, URIRef, Variable

from streamgauge.formats.canonical import parse_term
from streamgauge.model import algebra as al
from streamgauge.model.algebra import (
    Aggregate,
    Alternative,
    Call,
    Exists,
    Expression,
    Inverse,
    NegatedSet,
    Node,
    Path,
    Pattern,
    Repeat,
    TriplePattern,
    Var,
)
from streamgauge.model.algebra import Sequence as Steps
from streamgauge.model.terms import XSD, Term, datatype
from streamgauge.query.prologue import Prologue, read_prologue
from streamgauge.query.stamps import FUNCTION, TIMESTAMP
from streamgauge.query.text import QueryError, Token, string_value, tokens

EMPTY = al.BGP(())


def read_by_rdflib(text: str, base: str | None = None) -> al.QueryForm:
    """The form of a query that pyoxigraph accepts; Pyparsing takes some thirty calls for one level of brackets."""
    words, before = tokens(text), sys.getrecursionlimit()
    sys.setrecursionlimit(10_000)
    try:
        return form(shape(text, words, read_prologue(text, words, default=base)))
    finally:
        sys.setrecursionlimit(before)


_NAME: Final = "term:"
_INVERSE: Final = "inverse:"

_RDF_TYPE_WORD: Final = "a"


@dataclass(frozen=True, slots=True)
class Shape:
    """rdflib's tree of a query and the terms (or separators) that its numbered names stand for."""

    tree: Any
    table: tuple[str, ...]
    prologue: Prologue
    signed: frozenset[int] = frozenset()
    """The places of numbers whose sign is part of them: ``+5`` and ``-5``, not ``+ 5``."""

    def term(self, name: URIRef) -> Term:
        """The term behind a name of the tree; IRIs that rdflib made itself (rdf:first) stay as they are."""
        text = str(name)
        return self.table[int(text.partition(":")[2])] if text.startswith((_NAME, _INVERSE)) else f"<{text}>"

    def signed_number(self, sign: str, place: int) -> Term:
        """The numeric constant behind a number of the tree, with a sign (or ``""``) before its digits."""
        return f'"{sign}{self.table[place][1:]}'

    def separator(self, name: str) -> str:
        """The separator string behind a name of the tree."""
        return self.table[int(name.partition(":")[2])]


def is_inverse(name: URIRef) -> bool:
    """Whether the name stands for ``^iri`` in a negated property set."""
    return str(name).startswith(_INVERSE)


def shape(text: str, words: Sequence[Token], prologue: Prologue) -> Shape:
    """The shape of a query that pyoxigraph accepts; QueryError when it goes beyond SPARQL 1.1."""
    table: list[str] = ["no term: a number of the tree is never 0, so that its sign shows"]
    signed: set[int] = set()
    written = list(_rewrite(words[prologue.end :], prologue, table, signed))
    plain = "".join(gap + piece for gap, piece, _ in written)
    try:
        return Shape(parseQuery(plain)[1], tuple(table), prologue, frozenset(signed))
    except (ParseBaseException, RecursionError) as error:
        where = _origin(written, getattr(error, "loc", 0))
        raise QueryError(
            "this goes beyond SPARQL 1.1, or is nested too deeply: write it in SPARQL 1.1", text, where
        ) from None


def _origin(written: Sequence[tuple[str, str, int]], location: int) -> int:
    passed = 0
    for gap, piece, start in written:
        passed += len(gap) + len(piece)
        if passed > location:
            return start
    return written[-1][2] if written else 0


def _rewrite(
    words: Sequence[Token], prologue: Prologue, table: list[str], signed: set[int]
) -> Iterator[tuple[str, str, int]]:
    """(gap, text for rdflib, position in the query) of every piece; ``table``, ``signed`` are filled on the way."""
    index, end, negated = 0, 0, False
    while index < len(words):
        token = words[index]
        counts = index > 0 and words[index - 1].says("LIMIT", "OFFSET")
        piece, used = (token.text, 1) if counts else _piece(words[index : index + 3], prologue, table, negated)
        # A path modifier follows its path without a space, or rdflib does not see it.
        near = token.start == end or token.text in ("*", "+", "?")
        gap = "" if near and not _precedes_number(words, index) else " "
        yield gap, piece, token.start
        if token.kind == "number" and not counts and index and _precedes_number(words, index - 1):
            signed.add(len(table) - 1)
        negated = _still_negated(token, negated)
        index += used
        end = words[index - 1].end


def _precedes_number(words: Sequence[Token], index: int) -> bool:
    """Whether a token is a sign that is part of the number after it, as SPARQL's longest terminal is."""
    following = words[index + 1 : index + 2]
    return (
        words[index].text in ("+", "-")
        and bool(following)
        and following[0].kind == "number"
        and following[0].start == words[index].end
    )


def _still_negated(token: Token, negated: bool) -> bool:
    if token.text == "!":
        return True
    return negated and (token.text in ("(", "|", "^", _RDF_TYPE_WORD) or token.kind in ("iri", "name"))


def _piece(rest: Sequence[Token], prologue: Prologue, table: list[str], negated: bool) -> tuple[str, int]:
    token = rest[0]
    if token.text == "^" and negated and len(rest) > 1:
        return _inverse(rest[1], prologue, table), 2
    if token.kind in ("iri", "name"):
        return _add(table, f"<{prologue.iri(token)}>", _NAME), 1
    if token.says(TIMESTAMP):
        return _add(table, FUNCTION, _NAME), 1
    if token.says("SEPARATOR") and len(rest) > 2 and rest[2].kind == "string":
        table.append(string_value(rest[2].text))
        return f'SEPARATOR="{_NAME}{len(table) - 1}"', 3
    if token.kind == "string":
        used = _literal_length(rest)
        return _add(table, prologue.literal(rest[:used]), _NAME), used
    if token.kind == "number":
        table.append(_number(token.text))
        return f"{len(table) - 1} ", 1
    return token.text, 1


def _number(text: str) -> Term:
    kind = "double" if "e" in text.lower() else "decimal" if "." in text else "integer"
    return f'"{text}"^^<{XSD}{kind}>'


def _literal_length(rest: Sequence[Token]) -> int:
    if len(rest) > 2 and rest[1].text == "^^":
        return 3
    return 2 if len(rest) > 1 and rest[1].kind == "language" else 1


def _inverse(token: Token, prologue: Prologue, table: list[str]) -> str:
    if token.text == _RDF_TYPE_WORD:
        return _add(table, "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>", _INVERSE)
    return _add(table, f"<{prologue.iri(token)}>", _INVERSE)


def _add(table: list[str], term: Term, kind: str) -> str:
    table.append(term)
    return f"<{kind}{len(table) - 1}>"


STRING: Final = XSD + "string"
_ARGUMENTS: Final = ("arg", "arg1", "arg2", "arg3", "text", "start", "length", "pattern", "replacement", "flags")
_SAME: Final = {"URI": "IRI", "ISURI": "ISIRI"}
_LEFT_TO_RIGHT: Final = {"ConditionalOrExpression": "||", "ConditionalAndExpression": "&&"}
_UNARY: Final = {"UnaryNot": "!", "UnaryPlus": "+", "UnaryMinus": "-"}
_NUMERIC: Final = frozenset(XSD + name for name in ("integer", "decimal", "double"))


@dataclass(slots=True)
class Nodes:
    """Turns the tree's nodes into ours; blank nodes are numbered by first appearance, apart per ``scope``."""

    shape: Shape
    numbers: dict[tuple[str, str], int] = field(default_factory=dict)
    scope: str = "query"

    def node(self, item: Any) -> Node:
        """A variable or a term."""
        if isinstance(item, Variable):
            return Var(str(item))
        if isinstance(item, BNode):
            return Var(f"_:{self.numbers.setdefault((self.scope, str(item)), len(self.numbers))}")
        return self.term(item)

    def term(self, item: Any) -> Term:
        """A term."""
        if isinstance(item, URIRef):
            return self.shape.term(item)
        if str(item.datatype) == XSD + "boolean":
            return f'"{item}"^^<{XSD}boolean>'
        place = int(item)
        if place > 0:
            return self.shape.signed_number("+" if place in self.shape.signed else "", place)
        return self.shape.signed_number("-", -place)

    def operand(self, item: Any) -> Expression:
        """The same in an expression, where the sign before a number is an operator of the tree."""
        if isinstance(item, Literal) and str(item.datatype) != XSD + "boolean":
            return self.shape.signed_number("", int(item))
        return self.node(item)


@dataclass(frozen=True, slots=True)
class ExpressionReader:
    """Reads expressions of one SELECT: ``exists`` reads a group, ``aggregates`` collects what GROUP BY computes."""

    nodes: Nodes
    exists: Callable[[Any], Pattern]
    aggregates: dict[Aggregate, Var] = field(default_factory=dict)

    def expression(self, tree: Any) -> Expression:
        """The algebra of an expression tree."""
        if isinstance(tree, Variable | URIRef | Literal):
            return self.nodes.operand(tree)
        name = str(tree.name)
        if name in _LEFT_TO_RIGHT:
            return self._chain(tree, [_LEFT_TO_RIGHT[name]] * len(tree.other or ()))
        if name in ("AdditiveExpression", "MultiplicativeExpression"):
            return self._chain(tree, tree.op or ())
        if name in _UNARY:
            return self._signed(_UNARY[name], tree.expr)
        if name == "RelationalExpression":
            return self._relation(tree)
        if name.startswith("Aggregate_"):
            return self._aggregate(tree, name.removeprefix("Aggregate_"))
        if name == "Function":
            return self._function(self.nodes.term(tree.iri), tuple(map(self.expression, tree.expr or ())))
        return self._builtin(tree, name.removeprefix("Builtin_").upper())

    def _chain(self, tree: Any, operators: Any) -> Expression:
        chain = self.expression(tree.expr)
        for operator, other in zip(operators, tree.other or (), strict=True):
            chain = Call(operator, (chain, self.expression(other)))
        return chain

    def _signed(self, operator: str, tree: Any) -> Expression:
        """``-5`` is a constant, its sign a part of it; ``- 5`` is an operation on one."""
        shape = self.nodes.shape
        if isinstance(tree, Literal) and str(tree.datatype) in _NUMERIC and int(tree) in shape.signed:
            return shape.signed_number(operator, int(tree))
        return Call(operator, (self.expression(tree),))

    def _relation(self, tree: Any) -> Expression:
        left = self.expression(tree.expr)
        if tree.op is None:
            return left
        if not str(tree.op).endswith("IN"):
            return Call(str(tree.op), (left, self.expression(tree.other)))
        inside = Call("IN", (left, *self._list(tree.other)))
        return inside if tree.op == "IN" else Call("!", (inside,))

    def _list(self, items: Any) -> tuple[Expression, ...]:
        """The members of an expression list; an empty one is rdf:nil in the tree."""
        return () if isinstance(items, URIRef) else tuple(map(self.expression, items))

    def _builtin(self, tree: Any, name: str) -> Expression:
        if name == "EXISTS":
            return Exists(self.exists(tree.graph))
        if name == "NOTEXISTS":
            return Call("!", (Exists(self.exists(tree.graph)),))
        if name in ("CONCAT", "COALESCE"):
            return Call(name, self._list(tree.arg))
        arguments = [tree[key] for key in _ARGUMENTS if key in tree]
        call = Call(_SAME.get(name, name), tuple(map(self.expression, arguments)))
        return self._resolved(call) if call.operator == "IRI" else call

    def _function(self, name: Term, arguments: tuple[Expression, ...]) -> Call:
        return Call(TIMESTAMP if name == FUNCTION else name, arguments)

    def _resolved(self, call: Call) -> Expression:
        """``IRI("relative")`` of a constant under a BASE is that IRI: our algebra has no BASE."""
        (argument,) = call.arguments
        if self.nodes.shape.prologue.base is None or not isinstance(argument, str) or datatype(argument) != STRING:
            return call
        try:
            iri = self.nodes.shape.prologue.resolve(parse_term(argument).value)
        except ValueError:
            return call
        return call if iri is None else f"<{iri}>"

    def _aggregate(self, tree: Any, name: str) -> Var:
        function = "GROUP_CONCAT" if name == "GroupConcat" else name.upper()
        argument = None if tree.vars == "*" else self.expression(tree.vars)
        separator = self.nodes.shape.separator(str(tree.separator)) if "separator" in tree else " "
        aggregate = Aggregate(function, argument, bool(tree.distinct), separator)
        return self.aggregates.setdefault(aggregate, Var(f".agg{len(self.aggregates)}"))


def triples(nodes: Nodes, flat: Sequence[Any]) -> Iterator[TriplePattern]:
    """The triple patterns of a flat list s, p, o, s, p, o ...; ``p/q`` and ``^p`` become plain patterns."""
    for index in range(0, len(flat), 3):
        subject, predicate, item = flat[index : index + 3]
        if isinstance(predicate, Variable):
            yield TriplePattern(nodes.node(subject), nodes.node(predicate), nodes.node(item))
        else:
            yield from _expand(nodes, subject, path(nodes, predicate), item)


def _expand(nodes: Nodes, subject: Any, way: Path, item: Any) -> Iterator[TriplePattern]:
    match way:
        case Inverse(path=inner):
            yield from _expand(nodes, item, inner, subject)
        case Steps(steps=(first, *rest)):
            middle = BNode() if rest else item
            yield from _expand(nodes, subject, first, middle)
            if rest:
                yield from _expand(nodes, middle, Steps(tuple(rest)), item)
        case _:
            start: Node = nodes.node(subject)
            yield TriplePattern(start, way, nodes.node(item))


def path(nodes: Nodes, tree: Any) -> Path:
    """The algebra of a path tree; a path of one step is that step."""
    if isinstance(tree, URIRef):
        return nodes.term(tree)
    parts = tree.part if isinstance(tree.part, list) else [tree.part]
    match str(tree.name):
        case "PathAlternative" if len(parts) > 1:
            return Alternative(tuple(path(nodes, part) for part in parts))
        case "PathSequence" if len(parts) > 1:
            return Steps(tuple(path(nodes, part) for part in parts))
        case "PathElt" if tree.mod:
            return Repeat(path(nodes, parts[0]), str(tree.mod))
        case "PathEltOrInverse":
            return Inverse(path(nodes, parts[0]))
        case "PathNegatedPropertySet":
            return _negated(nodes, [part for part in parts if part is not None])
        case _:
            return path(nodes, parts[0])


def _negated(nodes: Nodes, parts: Sequence[Any]) -> NegatedSet:
    forward = tuple(nodes.term(part) for part in parts if not is_inverse(part))
    return NegatedSet(forward, tuple(nodes.term(part) for part in parts if is_inverse(part)))


def form(shape: Shape) -> al.QueryForm:
    """The query form of a SELECT, ASK or CONSTRUCT tree."""
    tree, patterns = shape.tree, Patterns(Nodes(shape))
    match str(tree.name):
        case "AskQuery":
            return al.Ask(patterns.modified(tree))
        case "ConstructQuery":
            return _construct(tree, patterns)
        case _:
            pattern = patterns.select(tree)
            return al.Select(pattern, tuple(var.name for var in _projected(pattern)))


def _construct(tree: Any, patterns: "Patterns") -> al.Construct:
    """The template and the pattern in the order of the text: blank nodes are numbered so."""
    if _is_short(tree):
        pattern = patterns.modified(tree)
        blocks = [flat for part in _parts(tree.where) for flat in part.triples]
        return al.Construct(_template(patterns.nodes, blocks), pattern)
    template = _template(patterns.nodes, tree.template or ())
    return al.Construct(template, patterns.modified(tree))


def _template(nodes: Nodes, blocks: Sequence[Any]) -> tuple[al.TriplePattern, ...]:
    around, nodes.scope = nodes.scope, "template"
    template = tuple(triple for flat in blocks for triple in triples(nodes, flat))
    nodes.scope = around
    return template


def _is_short(tree: Any) -> bool:
    """Whether a CONSTRUCT is written CONSTRUCT WHERE (16.2.4); an empty template is left out of the tree too."""
    return "template" not in tree and tree.where is not None and not str(tree.where.name).startswith("GroupGraph")


def _projected(pattern: al.Pattern) -> tuple[al.Var, ...]:
    match pattern:
        case al.Project(variables=variables):
            return variables
        case al.Slice(pattern=inner) | al.Distinct(pattern=inner) | al.Reduced(pattern=inner):
            return _projected(inner)
        case _:
            raise ValueError("a SELECT projects")


def _parts(where: Any) -> Sequence[Any]:
    return () if where is None else where.part or ()


class Patterns:
    """Translates groups and SELECTs; one numbering of blank nodes for the whole query."""

    def __init__(self, nodes: Nodes) -> None:
        self.nodes = nodes
        self._reader = ExpressionReader(nodes, self.group)

    def group(self, tree: Any) -> al.Pattern:
        """The pattern of a group, its FILTERs applied to the whole of it."""
        pattern, filters = self._open(tree)
        return al.Filter(reduce(both, filters), pattern) if filters else pattern

    def _open(self, tree: Any) -> tuple[al.Pattern, list[al.Expression]]:
        """The pattern and the FILTERs of a group, apart; triples on both sides of a FILTER are one BGP."""
        if tree is not None and tree.name == "SubSelect":
            return self.select(tree), []
        pattern: al.Pattern = EMPTY
        block: list[al.TriplePattern] = []
        filters: list[al.Expression] = []
        for part in _parts(tree):
            if part.name == "TriplesBlock":
                block.extend(triple for flat in part.triples for triple in triples(self.nodes, flat))
            elif part.name == "Filter":
                filters.append(self._reader.expression(part.expr))
            else:
                pattern, block = self._part(join(pattern, al.BGP(tuple(block))), part), []
        return join(pattern, al.BGP(tuple(block))), filters

    def _part(self, left: al.Pattern, part: Any) -> al.Pattern:
        match str(part.name):
            case "OptionalGraphPattern":
                right, filters = self._open(part.graph)
                return al.LeftJoin(left, right, reduce(both, filters) if filters else None)
            case "MinusGraphPattern":
                return al.Minus(left, self.group(part.graph))
            case "Bind":
                return al.Extend(left, al.Var(str(part.var)), self._reader.expression(part.expr))
            case "GraphGraphPattern":
                name = self.nodes.node(part.term)
                return join(left, al.Graph(name, self.group(part.graph)))
            case "InlineData":
                return join(left, self._values(part))
            case _:
                return join(left, reduce(al.Union, map(self.group, part.graph)))

    def _values(self, tree: Any) -> al.Values:
        variables = tuple(al.Var(str(var)) for var in tree["var"] or ()) if "var" in tree else ()
        rows = (tree["value"] or ()) if "value" in tree else ()
        return al.Values(variables, tuple(self._row(row, len(variables)) for row in rows))

    def _row(self, row: Any, width: int) -> tuple[str | None, ...]:
        cells = row if not isinstance(row, str) else [row]
        return tuple(None if cell == "UNDEF" else self.nodes.term(cell) for cell in list(cells)[:width])

    def select(self, tree: Any) -> al.Pattern:
        """SELECT: 18.2.4 and 18.2.5; ``*`` is every visible variable, blank nodes left out."""
        pattern, reader = self._aggregated(tree)
        items = [(item["var"], None) if "var" in item else (item.evar, item.expr) for item in tree.projection or ()]
        columns = [(al.Var(str(var)), None if expr is None else reader.expression(expr)) for var, expr in items]
        having, order = self._conditions(tree, reader)
        pattern = self._grouped(tree, pattern, reader, having)
        for var, expr in columns:
            if expr is not None:
                pattern = al.Extend(pattern, var, expr)
        variables = tuple(var for var, _ in columns) if columns else _visible(pattern)
        pattern = al.Project(al.OrderBy(pattern, order) if order else pattern, variables)
        if "modifier" in tree:
            pattern = al.Distinct(pattern) if tree.modifier == "DISTINCT" else al.Reduced(pattern)
        return _slice(tree, pattern)

    def modified(self, tree: Any) -> al.Pattern:
        """The WHERE of an ASK or CONSTRUCT under its solution modifiers."""
        pattern, reader = self._aggregated(tree)
        having, order = self._conditions(tree, reader)
        pattern = self._grouped(tree, pattern, reader, having)
        return _slice(tree, al.OrderBy(pattern, order) if order else pattern)

    def _aggregated(self, tree: Any) -> tuple[al.Pattern, ExpressionReader]:
        return self.group(tree.where), ExpressionReader(self.nodes, self.group)

    def _conditions(
        self, tree: Any, reader: ExpressionReader
    ) -> tuple[list[al.Expression], tuple[tuple[al.Expression, bool], ...]]:
        having = [reader.expression(item) for item in tree.having.condition] if "having" in tree else []
        keys = tree.orderby.condition if "orderby" in tree else ()
        return having, tuple((reader.expression(key.expr), key.order == "DESC") for key in keys)

    def _grouped(
        self, tree: Any, pattern: al.Pattern, reader: ExpressionReader, having: list[al.Expression]
    ) -> al.Pattern:
        if "groupby" in tree or reader.aggregates:
            keys = tree.groupby.condition if "groupby" in tree else ()
            aggregates = tuple((var, aggregate) for aggregate, var in reader.aggregates.items())
            pattern = al.Group(pattern, tuple(self._key(index, key) for index, key in enumerate(keys)), aggregates)
        if having:
            pattern = al.Filter(reduce(both, having), pattern)
        return join(pattern, self._values(tree.valuesClause)) if "valuesClause" in tree else pattern

    def _key(self, index: int, tree: Any) -> tuple[al.Var, al.Expression]:
        named = getattr(tree, "name", "") == "GroupAs"
        expression = self._reader.expression(tree.expr if named else tree)
        if named and "var" in tree:
            return al.Var(str(tree["var"])), expression
        return (expression if isinstance(expression, al.Var) else al.Var(f".key{index}")), expression


def _visible(pattern: al.Pattern) -> tuple[al.Var, ...]:
    return tuple(var for var in al.pattern_variables(pattern) if not var.name.startswith("_:"))


def _slice(tree: Any, pattern: al.Pattern) -> al.Pattern:
    if "limitoffset" not in tree:
        return pattern
    clause = tree.limitoffset
    limit = int(clause.limit) if "limit" in clause else None
    return al.Slice(pattern, int(clause.offset) if "offset" in clause else 0, limit)


def both(left: al.Expression, right: al.Expression) -> al.Expression:
    return al.Call("&&", (left, right))


def join(left: al.Pattern, right: al.Pattern) -> al.Pattern:
    if left == EMPTY:
        return right
    return left if right == EMPTY else al.Join(left, right)
