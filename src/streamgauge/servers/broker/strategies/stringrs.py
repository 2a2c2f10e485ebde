"""StringRS, reconstructed: publications are similar whose texts are; rows are put together of blocks of the text.

A publication is written in a fixed order and cut into blocks at delimiters. Two of the same number of blocks (P5), most
of them equal (P6), are similar. Of two rows to which similar ones led, each block is a constant, where it is equal, or
a copy of the block at the same place of both publications (P7).
"""

import re
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias

from streamgauge.formats.canonical import parse_term
from streamgauge.model.terms import Row
from streamgauge.reasoning.rules import Rules
from streamgauge.servers.broker.evaluation import Graph, Guessing

DELIMITERS: Final = re.compile(r'([/:.@#"<>\s]+)')
SIMILAR: Final = 0.5
"""The least share of equal blocks of similar publications."""
REMEMBERED: Final = 8
"""How many pairs of publication and row are remembered to learn from."""
TEMPLATES: Final = 50
"""The most templates that are kept and tried, those that were learned most often."""

Blocks: TypeAlias = tuple[str, ...]
Template: TypeAlias = tuple[int | str, ...]
"""Per block of a row: the number of the publication's block that it copies, or its text."""


def start(rules: Rules) -> Guessing:
    """Without facts and channels."""
    return Guessing(rules, StringRS)


@dataclass(frozen=True, slots=True)
class _Pair:
    graph: Blocks
    row: Blocks


class StringRS:
    """Templates by the number of blocks of the publications that they were learned of."""

    def __init__(self, width: int) -> None:
        self._width = width
        self._pairs: deque[_Pair] = deque(maxlen=REMEMBERED)
        self._templates: dict[int, Counter[Template]] = {}

    def learn(self, graph: Graph, row: Row) -> None:
        """The common part of a row and those before, and the places of its other blocks."""
        pair = _Pair(blocks(written(graph)), blocks("\n".join(cell or "" for cell in row)))
        for other in self._pairs:
            if _similar(pair.graph, other.graph) and (template := _template(pair, other)) is not None:
                self._note(len(pair.graph), template)
        self._pairs.append(pair)

    def _note(self, size: int, template: Template) -> None:
        known = self._templates.setdefault(size, Counter())
        known[template] += 1
        if len(known) > 2 * TEMPLATES:
            self._templates[size] = Counter(dict(known.most_common(TEMPLATES)))

    def guess(self, graph: Graph) -> Iterable[Row]:
        """The rows that templates for texts of this length make of a publication."""
        text = blocks(written(graph))
        for template, _ in self._templates.get(len(text), Counter[Template]()).most_common(TEMPLATES):
            row = tuple(_terms("".join(text[part] if isinstance(part, int) else part for part in template)))
            if len(row) == self._width:
                yield row


def written(graph: Graph) -> str:
    """A publication as text: its triples in the order of their predicates, as they came where those are the same."""
    return "\n".join(" ".join(triple) for triple in sorted(graph, key=lambda triple: triple[1]))


def blocks(text: str) -> Blocks:
    """The text between delimiters, and the delimiters."""
    return tuple(DELIMITERS.split(text))


def _similar(one: Blocks, two: Blocks) -> bool:
    return len(one) == len(two) and sum(a == b for a, b in zip(one, two, strict=True)) >= SIMILAR * len(one)


def _template(one: _Pair, two: _Pair) -> Template | None:
    """How both rows are made of their publications; ``None`` where they are made differently."""
    if len(one.row) != len(two.row):
        return None
    places: dict[tuple[str, str], int] = {}
    for at, both in enumerate(zip(one.graph, two.graph, strict=True)):
        places.setdefault(both, at)
    parts: list[int | str] = []
    for both in zip(one.row, two.row, strict=True):
        if both in places:
            parts.append(places[both])
        elif both[0] == both[1]:
            parts.append(both[0])
        else:
            return None
    return tuple(parts)


def _terms(text: str) -> Iterator[str]:
    """The terms of a row's text, one a line, up to a line that is none."""
    for line in text.split("\n"):
        try:
            parse_term(line)
        except ValueError:
            return
        yield line
