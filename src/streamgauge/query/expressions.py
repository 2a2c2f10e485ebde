"""Expressions of SPARQL by precedence climbing: operators, built-in functions, casts, aggregates, EXISTS."""

import re
from abc import ABC, abstractmethod
from typing import Final

from streamgauge.model import algebra as al
from streamgauge.model.phrases import meant
from streamgauge.model.terms import XSD, datatype, lexical, triple_term
from streamgauge.query.stamps import FUNCTION, TIMESTAMP
from streamgauge.query.text import string_value
from streamgauge.query.triples import TripleReader
from streamgauge.query.versions import LATER_FUNCTIONS, truth

_ANY: Final = 1 << 30
_ARITIES: Final[dict[tuple[int, int], str]] = {
    (0, 0): "NOW RAND UUID STRUUID",
    (0, 1): "BNODE",
    (1, 1): """STR LANG DATATYPE IRI URI ABS CEIL FLOOR ROUND STRLEN UCASE LCASE ENCODE_FOR_URI YEAR MONTH DAY HOURS
        MINUTES SECONDS TIMEZONE TZ MD5 SHA1 SHA256 SHA384 SHA512 ISIRI ISURI ISBLANK ISLITERAL ISNUMERIC BOUND
        LANGDIR HASLANG HASLANGDIR ISTRIPLE SUBJECT PREDICATE OBJECT""",
    (3, 3): "IF TRIPLE STRLANGDIR",
    (2, 2): "CONTAINS STRSTARTS STRENDS STRBEFORE STRAFTER LANGMATCHES SAMETERM STRLANG STRDT",
    (2, 3): "REGEX SUBSTR",
    (3, 4): "REPLACE",
    (0, _ANY): "COALESCE CONCAT",
}
_BUILT_IN: Final = {name: arity for arity, names in _ARITIES.items() for name in names.split()}
"""Built-in functions with their minimum and maximum numbers of arguments."""
_SAME: Final = {"URI": "IRI", "ISURI": "ISIRI"}
_AGGREGATES: Final = ("COUNT", "SUM", "AVG", "MIN", "MAX", "SAMPLE", "GROUP_CONCAT")
_CASTS: Final = frozenset(
    f"<{XSD}{name}>"
    for name in (
        *("boolean", "double", "float", "decimal", "integer", "string", "date", "time", "dateTime", "gYear"),
        *("gYearMonth", "gMonth", "gDay", "gMonthDay", "duration", "yearMonthDuration", "dayTimeDuration"),
    )
)
"""Functions by IRI: the casts of SPARQL 1.1 (17.5) and those to the other supported datatypes."""
_RELATION: Final = 3
_BINDING: Final = {
    **{"||": 1, "&&": 2, "+": 4, "-": 4, "*": 5, "/": 5},
    **dict.fromkeys(("=", "!=", "<", ">", "<=", ">="), _RELATION),
}
"""Precedence of binary operators."""


class ExpressionReader(TripleReader, ABC):
    """A reader of expressions; ``QueryReader`` implements ``_group``."""

    _aggregates: dict[al.Aggregate, al.Var] | None = None
    """The aggregates met so far in columns, HAVING or ORDER BY, with their variables; ``None`` elsewhere."""
    _inside_aggregate = False

    @abstractmethod
    def _group(self) -> al.Pattern: ...

    def _begins_constraint(self) -> bool:
        word = self._word()
        known = word in _BUILT_IN or word in _AGGREGATES or word in ("EXISTS", "NOT", TIMESTAMP)
        return known or self._is("(") or self._token.kind in ("iri", "name")

    def _constraint(self, clause: str) -> al.Expression:
        """An expression in brackets, or a call."""
        if not self._begins_constraint():
            self._expect(f"{clause} (an expression in brackets or a function)")
        return self._bracketed() if self._skip("(") else self._call()

    def _condition(self) -> al.Expression:
        """An expression whose effective boolean value is taken."""
        return self._true(self._constraint("a condition"))

    def _true(self, expression: al.Expression) -> al.Expression:
        """The effective boolean value of an expression in the announced version of SPARQL (``versions.truth``)."""
        return truth(expression) if self._earlier else expression

    def _bracketed(self) -> al.Expression:
        expression = self._expression()
        self._must(")")
        return expression

    def _expression(self, least: int = 1) -> al.Expression:
        """An expression of operators with a precedence of at least ``least``; all are left-associative."""
        # The weight of siblings does not add up: only what is open at once makes the tree high.
        around = self._weight
        self._weigh()
        left = self._unary()
        while (binding := self._binding()) >= least:
            self._weigh()
            # The only binary operators that are words: IN and NOT IN.
            if self._word():
                negated = self._says("NOT")
                self._must_say("IN")
                inside = al.Call("IN", _tags_lowered((left, *self._arguments())))
                left = al.Call("!", (inside,)) if negated else inside
            else:
                operator = self._take().text
                # One more than its own precedence, so that operators of the same one are left-associative.
                right = self._expression(binding + 1)
                if operator in ("&&", "||"):
                    left, right = self._true(left), self._true(right)
                left = al.Call(operator, _tags_lowered((left, right)))
            # The grammar has at most one comparison in a RelationalExpression: ``a < b < c`` is a syntax error.
            if binding == _RELATION and self._binding() == _RELATION:
                self._refuse("comparisons cannot be chained: write both, with && between them")
        self._weight = around
        return left

    def _binding(self) -> int:
        """The precedence of the next operator, 0 for none; + and - after an operand are operators."""
        if self._token.kind == "sign":
            return _BINDING.get(self._token.text, 0)
        return _RELATION if self._word() in ("IN", "NOT") else 0

    def _unary(self) -> al.Expression:
        if self._skip("!"):
            self._weigh()
            # ``!!a`` is new in SPARQL 1.2; in 1.1 a PrimaryExpression follows the sign.
            return al.Call("!", (self._true(self._primary() if self._earlier else self._unary()),))
        if self._is("+", "-") and not self._is_signed_number():
            return al.Call(self._take().text, (self._primary(),))
        return self._primary()

    def _primary(self) -> al.Expression:
        if self._token.kind == "variable":
            return self._variable()
        if self._skip("("):
            return self._bracketed()
        if self._skip("<<("):
            return self._triple_value()
        if self._token.kind == "word" and not self._begins_literal():
            return self._call()
        # An IRI is a function only if a bracket follows; the token is read again then.
        at, term = self._at, self._term("a value: a variable, a constant or a function")
        if self._is("(") and self._words[at].kind in ("iri", "name"):
            self._at = at
            return self._call()
        return term

    def _triple_value(self) -> al.Expression:
        """The rest of ``<<( s p o )>>`` in an expression: a constant, or a call of TRIPLE."""
        subject = self._variable() if self._token.kind == "variable" else self._iri()
        predicate = self._verb()
        item: al.Expression
        if self._skip("<<("):
            item = self._triple_value()
        else:
            item = self._variable() if self._token.kind == "variable" else self._term()
        self._must(")>>")
        if isinstance(subject, str) and isinstance(predicate, str) and isinstance(item, str):
            return triple_term((subject, predicate, item))
        return al.Call("TRIPLE", (subject, predicate, item))

    def _arguments(self, function: str = "") -> list[al.Expression]:
        """Arguments in brackets, possibly none; a function by IRI may have DISTINCT before them."""
        self._must("(")
        arguments: list[al.Expression] = []
        if self._skip(")"):
            return arguments
        if function and self._says("DISTINCT"):
            self._leave_unanswered(f"the custom aggregate {function} is not supported", self._token)
        arguments.append(self._expression())
        while self._skip(","):
            arguments.append(self._expression())
        self._must(")")
        return arguments

    def _call(self) -> al.Expression:
        """EXISTS, an aggregate, a built-in function or a function by IRI."""
        if self._says("EXISTS"):
            return al.Exists(self._inner_group())
        if self._says("NOT"):
            self._must_say("EXISTS")
            return al.Call("!", (al.Exists(self._inner_group()),))
        name, token = self._word(), self._token
        if name in _AGGREGATES:
            self._at += 1
            return self._aggregate(name)
        if name == TIMESTAMP:
            self._at += 1
            return al.Call(TIMESTAMP, tuple(self._arguments()))
        if not name:
            return self._by_iri()
        if name not in _BUILT_IN:
            if self._text[token.end :].lstrip()[:1] == "(" and not self._known_mistake(token):
                self._refuse(f"{token.text} is not a function of SPARQL{meant(name, _BUILT_IN)}", token)
            self._expect("a value: a variable, a constant or a function")
        self._at += 1
        arguments = self._arguments()
        self._check_arity(name, arguments)
        if name in LATER_FUNCTIONS:
            self._check_version(name, token)
        if name == "IF":
            arguments[0] = self._true(arguments[0])
        call = al.Call(_SAME.get(name, name), _tags_lowered(tuple(arguments)))
        return self._resolved(call) if call.operator == "IRI" else call

    def _by_iri(self) -> al.Expression:
        """A function named by an IRI: a cast or timestamp(); others are noted as unsupported."""
        token = self._token
        function = self._iri()
        arguments = tuple(self._arguments(function))
        if function == FUNCTION:
            return al.Call(TIMESTAMP, arguments)
        if function not in _CASTS or len(arguments) != 1:
            count = "" if function not in _CASTS else f" with {len(arguments)} arguments"
            what = f"the custom function {function} is not supported{count}; use the built-ins of SPARQL and casts"
            self._leave_unanswered(what, token)
        return al.Call(function, arguments)

    def _inner_group(self) -> al.Pattern:
        """The group of an EXISTS, in which the outer aggregates are not visible."""
        # A group of its own: an aggregate in it would belong to no SELECT.
        around, self._aggregates = self._aggregates, None
        pattern = self._group()
        self._aggregates = around
        return pattern

    def _resolved(self, call: al.Call) -> al.Expression:
        """``IRI("relative")`` of a constant, resolved here by BASE because the algebra has none."""
        (argument,) = call.arguments
        if self._prologue.base is None or not isinstance(argument, str) or datatype(argument) != f"{XSD}string":
            return call
        try:
            iri = self._prologue.resolve(lexical(argument))
        except ValueError:
            return call
        return call if iri is None else f"<{iri}>"

    def _check_arity(self, name: str, arguments: list[al.Expression]) -> None:
        least, upper = _BUILT_IN[name]
        if name == "BOUND" and not all(isinstance(part, al.Var) for part in arguments):
            self._refuse("BOUND takes one variable, like BOUND(?x)")
        if not least <= len(arguments) <= upper:
            count = f"{least} to {upper}" if upper != least else f"{least}"
            self._refuse(f"{name} takes {count} arguments, not {len(arguments)}", self._words[self._at - 1])

    def _aggregate(self, name: str) -> al.Var:
        """The variable that stands for an aggregate, read from its bracket on; equal aggregates share one."""
        known, token = self._aggregates, self._words[self._at - 1]
        if known is None:
            where = "in another aggregate" if self._inside_aggregate else "here"
            self._refuse(f"{name} is not allowed {where}: aggregates belong in SELECT, HAVING and ORDER BY", token)
        self._must("(")
        # Aggregates do not nest (SPARQL 1.1, 19.8: only in SELECT, HAVING and ORDER BY): within one, the next is
        # refused with a message of its own.
        self._aggregates, self._inside_aggregate = None, True
        distinct = self._says("DISTINCT")
        argument = None if name == "COUNT" and self._skip("*") else self._expression()
        self._aggregates, self._inside_aggregate = known, False
        separator = " "
        if name == "GROUP_CONCAT" and self._skip(";"):
            self._must_say("SEPARATOR")
            self._must("=")
            if self._token.kind != "string":
                self._expect("the separator, in quotes")
            separator = string_value(self._take().text)
        self._must(")")
        # The dot keeps the variable apart from every variable of a text; printers replace it.
        aggregate = al.Aggregate(name, argument, distinct, separator)
        return known.setdefault(aggregate, al.Var(f".agg{len(known)}"))


_TAG: Final = re.compile(r'"[A-Za-z]{1,8}(?:-[A-Za-z0-9]{0,8})*"')


def _tags_lowered(operands: tuple[al.Expression, ...]) -> tuple[al.Expression, ...]:
    """The operands, with constants beside LANG(...) in lower case, as language tags are in the data.

    ``LANG(?o) = "en-GB"`` has to match ``"x"@en-GB``: tags are case-insensitive (RDF 1.2, 3.4; RFC 5646, 2.1.1).
    """
    if not any(isinstance(operand, al.Call) and operand.operator == "LANG" for operand in operands):
        return operands
    return tuple(one.lower() if isinstance(one, str) and _TAG.fullmatch(one) else one for one in operands)
