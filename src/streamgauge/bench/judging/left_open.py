"""What SPARQL 1.1 leaves open, so that no legal answer is called wrong: GROUP_CONCAT's order, SAMPLE's choice."""

from collections.abc import Callable, Sequence

from streamgauge.model import algebra as a
from streamgauge.model.terms import Row, Term
from streamgauge.query.rebuild import every_pattern

Settle = Callable[[Sequence[Row]], tuple[Row, ...]]
"""Rows to rows that are equal when SPARQL allows one in place of the other."""


def chooses(form: a.QueryForm) -> bool:
    """Whether the query has SAMPLE, which may give any value of its group (18.5.1.8)."""
    groups = (pattern for pattern in every_pattern(form.pattern) if isinstance(pattern, a.Group))
    return any(each.function == "SAMPLE" for group in groups for _, each in group.aggregates)


def settled(form: a.QueryForm) -> Settle:
    """Puts the parts of every concatenation in order (18.5.1.7 gives them none): split at the separator, sorted."""
    columns = concatenations(form)
    if not columns:
        return tuple
    return lambda rows: tuple(_settled(row, columns) for row in rows)


def concatenations(form: a.QueryForm) -> dict[int, str]:
    """The columns that a GROUP_CONCAT binds as it is, with their separators; an empty one cannot be told apart."""
    if not isinstance(form, a.Select):
        return {}
    patterns = list(every_pattern(form.pattern))
    joined = {
        variable: each.separator
        for pattern in patterns
        if isinstance(pattern, a.Group)
        for variable, each in pattern.aggregates
        if each.function == "GROUP_CONCAT" and each.separator
    }
    for pattern in patterns:
        if isinstance(pattern, a.Extend) and pattern.expression in joined:
            joined[pattern.variable] = joined[pattern.expression]
    return {i: joined[a.Var(name)] for i, name in enumerate(form.variables) if a.Var(name) in joined}


def _settled(row: Row, columns: dict[int, str]) -> Row:
    return tuple(_sorted(term, columns[i]) if i in columns else term for i, term in enumerate(row))


def _sorted(term: Term | None, separator: str) -> Term | None:
    if term is None or not term.startswith('"'):
        return term
    end = term.rindex('"')
    escaped = separator.translate(_ESCAPES)
    return f'"{escaped.join(sorted(term[1:end].split(escaped)))}{term[end:]}'


_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r"})
