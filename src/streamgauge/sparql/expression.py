"""SPARQL 1.1 expressions on solutions (sections 17.2 to 17.4): terms in, a term or an error out."""

from collections.abc import Callable, Mapping
from typing import TypeAlias

from streamgauge.model.algebra import Exists, Expression
from streamgauge.model.terms import Term

Solution: TypeAlias = Mapping[str, Term | None]
ExistsTest: TypeAlias = Callable[[Exists, Solution], bool]


def evaluate(expression: Expression, solution: Solution, exists: ExistsTest | None = None) -> Term | None:
    """The value of an expression; ``None`` for SPARQL's error and for an unbound variable."""
    raise NotImplementedError


def holds(condition: Expression, solution: Solution, exists: ExistsTest | None = None) -> bool:
    """Whether FILTER(condition) keeps the solution: its effective boolean value (17.2.2); an error is False."""
    raise NotImplementedError


def compiled(expression: Expression) -> Callable[[Solution, ExistsTest | None], Term | None]:
    """The expression as a function of a solution and the test of its EXISTS."""
    raise NotImplementedError


def condition(expression: Expression) -> Callable[[Solution, ExistsTest | None], bool]:
    """``holds`` for one condition, compiled."""
    raise NotImplementedError
