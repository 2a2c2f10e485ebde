"""rdflib's expression trees as algebra expressions."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from rdflib.term import BNode, Literal, URIRef, Variable

from streamgauge.formats.canonical import parse_term
from streamgauge.model.algebra import Aggregate, Call, Exists, Expression, Node, Pattern, Var
from streamgauge.model.terms import XSD, Term, datatype
from streamgauge.query.shape import Shape
from streamgauge.query.stamps import FUNCTION, TIMESTAMP, WORD

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
        return Call(TIMESTAMP if name in (FUNCTION, WORD) else name, arguments)

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
