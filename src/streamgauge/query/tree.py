"""rdflib's syntax tree as algebra, by the rules of https://www.w3.org/TR/sparql11-query/#translation."""

from collections.abc import Sequence
from functools import reduce
from typing import Any

from streamgauge.model import algebra as al
from streamgauge.query.direct import EMPTY, both, join
from streamgauge.query.expressions import ExpressionReader, Nodes
from streamgauge.query.paths import triples
from streamgauge.query.shape import Shape


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
    pattern = patterns.modified(tree)
    blocks = tree.template if not _is_short(tree) else [flat for part in _parts(tree.where) for flat in part.triples]
    nodes = patterns.nodes
    nodes.scope = "template"
    return al.Construct(tuple(triple for flat in blocks or () for triple in triples(nodes, flat)), pattern)


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
