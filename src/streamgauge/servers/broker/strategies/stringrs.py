"""StringRS, reconstructed: similar publications give similar rows, composed of blocks of the publication's text.

A publication is serialised in a fixed order and split into blocks at delimiters. Two publications are similar if they
have the same number of blocks (P5) and at least half of the blocks are equal (P6). A template is learned from the rows
of two similar publications: a block is constant if it is equal in both rows, or copied from the publication's block
with the same two values (P7). For example, ``:a :value 3`` with the row ``:a`` and ``:b :value 5`` with ``:b`` give a
template that copies the subject.
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
"""Minimum share of equal blocks in similar publications."""
REMEMBERED: Final = 8
"""Pairs of publication and row that new ones are compared with."""
TEMPLATES: Final = 50
"""Maximum number of templates tried, those that were learned most often."""

Blocks: TypeAlias = tuple[str, ...]
Template: TypeAlias = tuple[int | str, ...]
"""Per block of a row: the number of the publication's block that it copies, or its text."""


def start(rules: Rules) -> Guessing:
    """The strategy without facts and channels."""
    return Guessing(rules, StringRS)


@dataclass(frozen=True, slots=True)
class _Pair:
    graph: Blocks
    row: Blocks


class StringRS:
    """Templates by the number of blocks of the publications that they were learned from."""

    def __init__(self, width: int) -> None:
        self._width = width
        self._pairs: deque[_Pair] = deque(maxlen=REMEMBERED)
        self._templates: dict[int, Counter[Template]] = {}

    def learn(self, graph: Graph, row: Row) -> None:
        """Learn templates by comparing a row and its publication with earlier pairs."""
        pair = _Pair(blocks(written(graph)), blocks("\n".join(cell or "" for cell in row)))
        for other in self._pairs:
            if _similar(pair.graph, other.graph) and (template := _template(pair, other)) is not None:
                self._note(len(pair.graph), template)
        self._pairs.append(pair)

    def _note(self, size: int, template: Template) -> None:
        known = self._templates.setdefault(size, Counter())
        known[template] += 1
        # Twice the number that is used: a new template gets the time to be met again before it is thrown out.
        if len(known) > 2 * TEMPLATES:
            self._templates[size] = Counter(dict(known.most_common(TEMPLATES)))

    def guess(self, graph: Graph) -> Iterable[Row]:
        """Rows by the templates for publications of this number of blocks."""
        text = blocks(written(graph))
        for template, _ in self._templates.get(len(text), Counter[Template]()).most_common(TEMPLATES):
            # The blocks of a row include the delimiters and line ends between its terms.
            row = tuple(_terms("".join(text[part] if isinstance(part, int) else part for part in template)))
            if len(row) == self._width:
                yield row


def written(graph: Graph) -> str:
    """A publication as text, its triples sorted by predicate (stable)."""
    return "\n".join(" ".join(triple) for triple in sorted(graph, key=lambda triple: triple[1]))


def blocks(text: str) -> Blocks:
    """The text split into delimiters and the text between them."""
    return tuple(DELIMITERS.split(text))


def _similar(one: Blocks, two: Blocks) -> bool:
    return len(one) == len(two) and sum(a == b for a, b in zip(one, two, strict=True)) >= SIMILAR * len(one)


def _template(one: _Pair, two: _Pair) -> Template | None:
    """The template of two rows; ``None`` if none describes both."""
    if len(one.row) != len(two.row):
        return None
    places: dict[tuple[str, str], int] = {}
    for at, both in enumerate(zip(one.graph, two.graph, strict=True)):
        # The first of equal pairs, so that one template comes of rows that only repeat a value.
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
    """The terms of a row's text, one per line, up to the first invalid line."""
    for line in text.split("\n"):
        try:
            parse_term(line)
        except ValueError:
            return
        yield line
