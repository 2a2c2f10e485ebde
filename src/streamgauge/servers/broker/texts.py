"""How long the texts are that a query computes: bounded before it is asked, for what computes them cannot be stopped.

The engine of REGEX does not backtrack, and takes time in proportion to the text; a pattern with a back-reference has
0.05 s (``sparql/regular.py``), so a query may have few of those, and none that is too large to be compiled
(``servers/http/limits.py``).
"""

from collections.abc import Mapping
from typing import Final

from streamgauge.model import algebra as al
from streamgauge.query.traversal import every_pattern, expressions
from streamgauge.servers.broker.limits import LimitError, Limits
from streamgauge.servers.http.limits import refused_patterns

_WIDER: Final = {"UCASE": 3, "LCASE": 3, "ENCODE_FOR_URI": 12}
"""How much longer a text may become."""


def check_texts(form: al.QueryForm, limits: Limits) -> None:
    """LimitError for an expression whose value may be longer than ``limits.text``, of terms within ``limits.term``.

    Also for patterns of regular expressions that cost too much.
    """
    made: dict[str, list[al.Expression]] = {}
    found: list[al.Expression] = []
    for pattern in every_pattern(form.pattern):
        found += expressions(pattern)
        if isinstance(pattern, al.Extend):
            made.setdefault(pattern.variable.name, []).append(pattern.expression)
    if refused := refused_patterns(form):
        raise LimitError(refused)
    lengths: dict[str, int] = {}
    for each in found:
        if _length(each, made, lengths, limits.term) > limits.text:
            raise LimitError(f"a computed text may have more than {limits.text} characters: CONCAT or REPLACE less")


def _length(
    expression: al.Expression, made: Mapping[str, list[al.Expression]], lengths: dict[str, int], term: int
) -> int:
    """The most characters that a value has; those of variables are remembered."""
    match expression:
        case al.Var(name=name):
            if name not in lengths:
                lengths[name] = term
                lengths[name] = max((_length(each, made, lengths, term) for each in made.get(name, ())), default=term)
            return lengths[name]
        case al.Call(operator=operator, arguments=arguments):
            given = [_length(each, made, lengths, term) for each in arguments]
            return _called(operator.upper(), given)
        case str():
            return len(expression)
        case _:
            return term


def _called(operator: str, given: list[int]) -> int:
    if operator == "CONCAT":
        return sum(given)
    if operator == "REPLACE":
        text, _, replacement, *_ = given
        return (text + 1) * (replacement + 1)
    return _WIDER.get(operator, 1) * max(given, default=0)
