"""``GROUP BY (?x AS ?n)``: SPARQL 1.1 allows it (rule GroupCondition), and pyoxigraph refuses an alias of a variable.

For pyoxigraph the variable is written as COALESCE of it, which has the same value and is unbound where it is:

    GROUP BY (?x AS ?n)         GROUP BY (COALESCE(?x) AS ?n)
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from streamgauge.query.tokens import Token, tokens

_OPEN: Final = "COALESCE("
_AFTER: Final = ("HAVING", "ORDER", "LIMIT", "OFFSET", "VALUES")


@dataclass(frozen=True, slots=True)
class WidenedText:
    """A query's text for pyoxigraph, with where each of its characters stands in the query."""

    text: str
    places: tuple[int, ...]

    def original(self, line: int, column: int) -> int:
        """The position in the query of a character at this line and column of the text, both from 1 on."""
        before = self.text.split("\n")[: line - 1]
        at = sum(len(each) + 1 for each in before) + column - 1
        return self.places[min(at, len(self.places) - 1)]


def widened(text: str) -> WidenedText | None:
    """The text with every such key as COALESCE of its variable; ``None`` where it has none."""
    found, parts, places, done = tokens(text), list[str](), list[int](), 0
    for start in _keys(found):
        variable = found[start]
        parts += [text[done : variable.start], _OPEN, variable.text, ")"]
        places += [*range(done, variable.start), *[variable.start] * len(_OPEN), *range(variable.start, variable.end)]
        places.append(variable.end)
        done = variable.end
    if not parts:
        return None
    return WidenedText("".join([*parts, text[done:]]), (*places, *range(done, len(text) + 1)))


def _keys(found: Sequence[Token]) -> Iterator[int]:
    """The places of variables that have an alias in a GROUP BY."""
    for place, (one, two) in enumerate(pairwise(found)):
        if one.says("GROUP") and two.says("BY"):
            yield from _aliases(found, place + 2)


def _aliases(found: Sequence[Token], place: int) -> Iterator[int]:
    """Those of one GROUP BY, whose keys begin at a place: each in parentheses of its own."""
    opened: list[int] = []
    while place < len(found) and (opened or not (found[place].text == "}" or found[place].says(*_AFTER))):
        if found[place].text == "(":
            opened.append(place)
        elif found[place].text == ")" and opened:
            first = opened.pop()
            if not opened:
                yield from _alias(found, range(first + 1, place))
        place += 1


def _alias(found: Sequence[Token], inside: range) -> Iterator[int]:
    """The variable of ``?x AS ?n``, in parentheses or not."""
    if len(inside) > 2 and found[inside[-2]].says("AS"):
        plain = [place for place in inside[:-2] if found[place].text not in "()"]
        if len(plain) == 1 and found[plain[0]].kind == "variable":
            yield plain[0]
