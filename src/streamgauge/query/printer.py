"""The printer: algebra as plain SPARQL with full IRIs; parsing the result gives an equal form."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from streamgauge.model import algebra as al
from streamgauge.model.terms import XSD, Term
from streamgauge.query.stamps import FUNCTION, TIMESTAMP
from streamgauge.query.text import NO_VARIABLE

_BINARY: Final = frozenset({"||", "&&", "=", "!=", "<", ">", "<=", ">=", "+", "-", "*", "/"})
_PLAIN: Final = {"integer": r"-?[0-9]+", "decimal": r"-?[0-9]+\.[0-9]+", "boolean": "true|false"}
_SHORT: Final = re.compile("|".join(rf'"({form})"\^\^<{re.escape(XSD)}{kind}>' for kind, form in _PLAIN.items()))
"""Literals that may be written without quotes."""
_ESCAPE: Final = re.compile(r"\\\\([uU])|\\.")
Wrap = Callable[[str], str]


def sparql(form: al.QueryForm, dataset: str = "", where: Wrap | None = None) -> str:
    """A query form as text; ``dataset`` is inserted before WHERE, ``where`` may wrap the outermost group."""
    layout = _Layout(dataset, lambda pattern: (where or str)("\n  ".join(("{", *_inside(pattern))) + "\n}"), "\n")
    match form:
        case al.Select(pattern=pattern):
            return _query("", pattern, layout)
        case al.Ask(pattern=pattern):
            return _query("ASK", pattern, layout)
        case al.Construct(template=template, pattern=pattern):
            return _query(" ".join(("CONSTRUCT {", *map(_triple, template), "}")), pattern, layout)


def expression(tree: al.Expression) -> str:
    """An expression as text, with brackets around operators."""
    return _Expressions({}).text(tree)


def group(pattern: al.Pattern) -> str:
    """A pattern as a group in braces, on one line."""
    return " ".join(("{", *_inside(pattern), "}"))


@dataclass(frozen=True, slots=True)
class _Layout:
    """The layout of a SELECT: the text before WHERE, the printer of its group, the separator of clauses."""

    dataset: str
    body: Callable[[al.Pattern], str]
    separator: str


@dataclass(frozen=True, slots=True)
class _Expressions:
    """Prints expressions; ``computed`` maps variables to their aggregates."""

    computed: Mapping[al.Var, al.Aggregate]

    def text(self, tree: al.Expression) -> str:
        match tree:
            case al.Var():
                return self.aggregate(self.computed[tree]) if tree in self.computed else _variable(tree)
            # Chains share one pair of brackets: nested ones would exceed the parser's limit on brackets.
            case al.Call(operator="&&" | "||" as operator, arguments=(al.Call(operator=inner) as left, right)) if (
                inner == operator
            ):
                return f"{self.text(left)[:-1]} {operator} {self.text(right)})"
            case al.Call(operator=operator, arguments=arguments):
                return self._call(operator, tuple(map(self.text, arguments)))
            case al.Exists(pattern=pattern):
                return f"EXISTS {group(pattern)}"
            case _:
                return _term(tree)

    def _call(self, operator: str, arguments: tuple[str, ...]) -> str:
        if operator == "IN":
            return f"({arguments[0]} IN ({', '.join(arguments[1:])}))"
        if operator in _BINARY and len(arguments) > 1:
            return f"({f' {operator} '.join(arguments)})"
        if operator in ("!", "+", "-"):
            return f"({operator} {arguments[0]})"
        return f"{FUNCTION if operator == TIMESTAMP else operator}({', '.join(arguments)})"

    def aggregate(self, value: al.Aggregate) -> str:
        distinct = "DISTINCT " if value.distinct else ""
        argument = "*" if value.argument is None else self.text(value.argument)
        quoted = value.separator.translate({92: "\\\\", 34: '\\"', 10: "\\n", 13: "\\r"})
        separator = f'; SEPARATOR = "{quoted}"' if value.function == "GROUP_CONCAT" else ""
        return f"{value.function}({distinct}{argument}{separator})"


def _inside(pattern: al.Pattern) -> tuple[str, ...]:
    """The elements between the braces of a group that parses to this pattern."""
    match pattern:
        case al.BGP(patterns=patterns):
            return tuple(map(_triple, patterns))
        case al.Join(left=left, right=right):
            return (*_first(left), _element(right))
        case al.LeftJoin(left=left, right=right, condition=condition):
            return (*_first(left), f"OPTIONAL {_optional(right, condition)}")
        case al.Minus(left=left, right=right):
            return (*_first(left), f"MINUS {group(right)}")
        case al.Extend(pattern=inner, variable=variable, expression=value):
            return (*_first(inner), f"BIND({expression(value)} AS {_variable(variable)})")
        case al.Filter(condition=condition, pattern=inner):
            return (*_first(inner), _filter(condition))
        # A subquery is a group's only element, with no second pair of braces.
        case al.Project() | al.Distinct() | al.Reduced() | al.Slice() | al.OrderBy() | al.Group():
            return (_query("", pattern, _Layout("", group, " ")),)
        case _:
            return (_element(pattern),)


def _optional(right: al.Pattern, condition: al.Expression | None) -> str:
    """The group of an OPTIONAL; a Filter in the right side gets braces of its own, or it would become the condition."""
    if condition is None and not isinstance(right, al.Filter):
        return group(right)
    own = (_filter(condition),) if condition is not None else ()
    return " ".join(("{", *_first(right), *own, "}"))


def _filter(condition: al.Expression) -> str:
    return f"FILTER{_braced(expression(condition))}"


def _braced(text: str) -> str:
    """An expression in exactly one pair of brackets."""
    # ``expression`` encloses each operator in brackets, so a text that begins with one also ends with its partner.
    return text if text.startswith("(") else f"({text})"


def _first(pattern: al.Pattern) -> tuple[str, ...]:
    """The pattern as the first elements of a longer group."""
    match pattern:
        # The parser builds these from left to right, so the left operand needs no braces of its own; a FILTER would
        # apply to the whole group.
        case al.BGP() | al.Join() | al.LeftJoin() | al.Minus() | al.Extend():
            return _inside(pattern)
        case _:
            return (_element(pattern),)


def _element(pattern: al.Pattern) -> str:
    """The pattern as one element of a group."""
    match pattern:
        case al.Union(left=left, right=right):
            # UNION is left-associative; a union on the right is printed as a nested group.
            return f"{_element(left) if isinstance(left, al.Union) else group(left)} UNION {group(right)}"
        case al.Graph(name=name, pattern=inner):
            return f"GRAPH {_node(name)} {group(inner)}"
        case al.Values():
            return _values(pattern)
        case _:
            return group(pattern)


def _values(data: al.Values) -> str:
    rows = (" ".join("UNDEF" if cell is None else _term(cell) for cell in row) for row in data.rows)
    variables = " ".join(map(_variable, data.variables))
    return f"VALUES ({variables}) {{ {' '.join(f'({row})' for row in rows)} }}"


@dataclass(slots=True)
class _Parts:
    """The clauses of a SELECT, from LIMIT down to WHERE."""

    where: al.Pattern
    variables: tuple[al.Var, ...] | None = None
    keyword: str = "SELECT"
    limits: str = ""
    order: tuple[tuple[al.Expression, bool], ...] = ()
    extends: dict[al.Var, al.Expression] = field(default_factory=dict)
    values: al.Values | None = None
    having: al.Expression | None = None
    group: al.Group | None = None


def _take_apart(pattern: al.Pattern, projects: bool) -> _Parts:
    parts = _Parts(pattern)
    if isinstance(parts.where, al.Slice):
        limit = "" if parts.where.limit is None else f"LIMIT {parts.where.limit}"
        parts.limits = f"OFFSET {parts.where.offset} {limit}".strip()
        parts.where = parts.where.pattern
    if projects and isinstance(parts.where, al.Distinct | al.Reduced):
        parts.keyword = "SELECT DISTINCT" if isinstance(parts.where, al.Distinct) else "SELECT REDUCED"
        parts.where = parts.where.pattern
    if projects and isinstance(parts.where, al.Project):
        parts.variables, parts.where = parts.where.variables, parts.where.pattern
    if isinstance(parts.where, al.OrderBy):
        parts.order, parts.where = parts.where.keys, parts.where.pattern
    _find_group(parts, projects)
    if projects and parts.variables is None:
        parts.variables = al.pattern_variables(parts.group or parts.where)
    return parts


def _find_group(parts: _Parts, projects: bool) -> None:
    """Fill in GROUP BY, HAVING and SELECT expressions if the pattern has the shape that the parser builds for them."""
    below, extends, values, having = parts.where, {}, None, None
    while projects and isinstance(below, al.Extend):
        extends[below.variable] = below.expression
        below = below.pattern
    if isinstance(below, al.Join) and isinstance(below.right, al.Values):
        values, below = below.right, below.left
    if isinstance(below, al.Filter):
        having, below = below.condition, below.pattern
    columns = [var for var in parts.variables or () if var in extends]
    # A column that reads another one cannot be written beside it: the parser would see the group's variable in its
    # place.
    apart = not any(al.expression_variables(value) & extends.keys() for value in extends.values())
    # Extends are nested from the last column to the first; in another order the text would parse to another tree.
    if isinstance(below, al.Group) and apart and columns == list(reversed(extends)):
        parts.extends, parts.values, parts.having = extends, values, having
        parts.group, parts.where = below, below.pattern


def _column(var: al.Var, parts: _Parts, prints: _Expressions) -> str:
    name = _variable(var)
    if var in parts.extends:
        return f"({prints.text(parts.extends[var])} AS {name})"
    return f"({prints.text(var)} AS {name})" if var in prints.computed else name


def _query(head: str, pattern: al.Pattern, layout: _Layout) -> str:
    """A query or subquery that begins with ``head``, or with SELECT and its columns if that is empty."""
    parts = _take_apart(pattern, projects=not head)
    # The algebra has variables for aggregates; where they are read, the text has the aggregate itself.
    prints = _Expressions(dict(parts.group.aggregates) if parts.group else {})
    columns = " ".join(_column(var, parts, prints) for var in parts.variables or ())
    clauses = [head or f"{parts.keyword} {columns or '*'}", layout.dataset, f"WHERE {layout.body(parts.where)}"]
    if parts.group and parts.group.keys:
        clauses.append(f"GROUP BY {' '.join(_key(var, value) for var, value in parts.group.keys)}")
    if parts.having is not None:
        clauses.append(f"HAVING{_braced(prints.text(parts.having))}")
    if parts.order:
        keys = (f"{'DESC' if descending else 'ASC'}({prints.text(key)})" for key, descending in parts.order)
        clauses.append(f"ORDER BY {' '.join(keys)}")
    clauses.append(parts.limits)
    clauses.append(_values(parts.values) if parts.values else "")
    return layout.separator.join(clause for clause in clauses if clause)


def _key(var: al.Var, value: al.Expression) -> str:
    if value == var:
        return _variable(var)
    return f"({expression(value)})" if var.name.startswith(".") else f"({expression(value)} AS {_variable(var)})"


# Terms, nodes, paths


def _term(value: Term) -> str:
    """A term: numbers and booleans abbreviated if that is the same term, others as in N-Triples."""
    if short := _SHORT.fullmatch(value):
        # The last group that matched is that of the literal's own kind.
        return str(short[short.lastindex or 0])
    return _ESCAPE.sub(_unambiguous, value) if value[0] == '"' and "\\" in value else value


def _unambiguous(escape: re.Match[str]) -> str:
    """A "u" after an escaped backslash, itself escaped, so that SPARQL 1.1 does not read a code point escape (19.2)."""
    return f"\\\\\\u{ord(escape.group(1)):04X}" if escape.group(1) else escape.group()


def _variable(var: al.Var) -> str:
    """A variable; generated names (``.agg0``, ``_:0``) are made valid by underscores."""
    return "?" + NO_VARIABLE.sub("_", var.name)


def _node(value: al.Node) -> str:
    """A variable, blank node or term in a triple pattern."""
    if not isinstance(value, al.Var):
        return _term(value)
    return f"_:b{value.name[2:]}" if value.name.startswith("_:") else _variable(value)


def _triple(pattern: al.TriplePattern) -> str:
    """A triple pattern with a full stop."""
    verb = pattern.predicate
    middle = _node(verb) if isinstance(verb, al.Var | str) else _path(verb)
    return f"{_node(pattern.subject)} {middle} {_node(pattern.object)} ."


def _path(way: al.Path) -> str:
    """A property path, in brackets if it is composed."""
    match way:
        case al.Inverse(path=inner):
            return f"(^{_path(inner)})"
        case al.Sequence(steps=steps):
            return f"({'/'.join(map(_path, steps))})"
        case al.Alternative(choices=choices):
            return f"({'|'.join(map(_path, choices))})"
        case al.Repeat(path=inner, modifier=modifier):
            return f"({_path(inner)}{modifier})"
        case al.NegatedSet(forward=forward, backward=backward):
            return f"!({'|'.join((*forward, *(f'^{name}' for name in backward)))})"
        case _:
            return str(way)
