"""New blank nodes: those of CONSTRUCT templates (16.2), and BNODE (17.4.2.9), one for each solution and label."""

from collections.abc import Callable, Mapping
from itertools import count

from streamgauge.model.algebra import Call, Exists, Expression, Pattern, Var
from streamgauge.model.terms import Term, is_blank
from streamgauge.query.traversal import every_expression, expression_parts
from streamgauge.sparql.dataset import Dataset
from streamgauge.sparql.expression import compiled

Solution = dict[str, Term]
_LABEL = ".label "


class BlankNodes:
    """Names blank nodes that no graph of a dataset has."""

    def __init__(self, dataset: Dataset) -> None:
        self._dataset = dataset
        self._prefix: str | None = None
        self._numbers = count()

    def new(self) -> Term:
        """A blank node that is nowhere yet."""
        if self._prefix is None:
            self._prefix = self._free_prefix()
        return f"_:{self._prefix}{next(self._numbers)}"

    def _free_prefix(self) -> str:
        graphs = (self._dataset.default, *self._dataset.named.values())
        taken = [node for graph in graphs for node in graph.nodes if is_blank(node)]
        prefix = "made"
        while any(node.startswith(f"_:{prefix}") for node in taken):
            prefix += "x"
        return prefix


def makes_blank_nodes(expression: Expression) -> bool:
    """Whether the expression calls BNODE."""
    return any(map(_is_call, every_expression(expression)))


def _is_call(part: Expression) -> bool:
    return isinstance(part, Call) and part.operator.upper() == "BNODE"


class BlankNodeCalls:
    """An expression without its calls of BNODE: each is a variable, which ``bound`` gives a blank node.

    BNODE of a string is the same node for all calls with that string on one solution, also in other expressions: the
    solution remembers it under a name that no query can write, until it is projected.
    """

    def __init__(self, expression: Expression, blank_nodes: BlankNodes) -> None:
        self._blank_nodes = blank_nodes
        self._labels: dict[str, Callable[..., Term | None] | None] = {}
        self.expression = self._without(expression)

    def _without(self, tree: Expression) -> Expression:
        if isinstance(tree, Call) and _is_call(tree):
            name = f".bnode{len(self._labels)}"
            self._labels[name] = compiled(tree.arguments[0]) if tree.arguments else None
            return Var(name)
        return tree if isinstance(tree, Exists) else expression_parts(tree, _same, self._without)

    def bound(self, solution: Solution, seen: Mapping[str, Term], exists: Callable[..., bool]) -> dict[str, Term]:
        """The nodes of the calls and of their labels; ``seen`` is the solution with what EXISTS puts for variables."""
        made: dict[str, Term] = {}
        for name, label in self._labels.items():
            if label is None:
                made[name] = self._blank_nodes.new()
                continue
            text = label(seen, exists)
            if text is not None and text[0] == '"' == text[-1]:
                kept = _LABEL + text
                made[kept] = solution.get(kept) or made.get(kept) or self._blank_nodes.new()
                made[name] = made[kept]
        return made


def labels(bindings: Mapping[str, Term]) -> Solution:
    """The nodes that a solution remembers for its labels."""
    return {name: term for name, term in bindings.items() if name.startswith(_LABEL)}


def _same(pattern: Pattern) -> Pattern:
    return pattern
