"""The words of the documentation and of the code in figures, which `python -m tests.structure` prints.

Words of a page are whitespace-separated tokens with a letter or digit, blocks of code included. Readability is the
Automated Readability Index (Smith and Senter, 1967), a school grade that needs no count of syllables; it is taken over
paragraphs and list items, without tables, headings and code.
"""

import ast
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

PRIVATE = frozenset(
    {"each", "found", "said", "told", "asked", "given", "held", "made", "MOST", "MANY", "ROOM", "ROUNDS"}
)
"""Names that say nothing of the field: a row is called `row`, a match `match`, a limit by what it limits."""

_FENCE = re.compile(r"^ *(```|~~~).*?^ *\1[^\n]*$", re.MULTILINE | re.DOTALL)
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
_ITEM = re.compile(r"^\s*(?:[-*]|\d+\.)\s+", re.MULTILINE)
_SENTENCE_END = re.compile(r"(?<=[.?!:;])\s+")


def words(text: str) -> list[str]:
    """The whitespace-separated tokens that have a letter or a digit."""
    return [token for token in text.split() if any(letter.isalnum() for letter in token)]


@dataclass(frozen=True)
class Page:
    """A page in Markdown."""

    name: str
    text: str

    @property
    def words(self) -> int:
        return len(words(self.text))

    @cached_property
    def sentences(self) -> list[list[str]]:
        """The sentences of paragraphs and list items, as words; without code, tables, headings and addresses."""
        prose = _LINK.sub(r"\1", _COMMENT.sub("", _FENCE.sub("", self.text)))
        lines = (line for line in prose.splitlines() if not line.lstrip().startswith(("|", "#")))
        blocks = re.split(r"\n\s*\n", _ITEM.sub("\n\n", "\n".join(lines)))
        parts = (part for block in blocks for part in _SENTENCE_END.split(block))
        return [sentence for sentence in map(words, parts) if sentence]


def readability(sentences: Iterable[list[str]]) -> float:
    """The Automated Readability Index of sentences, 0 where there are none."""
    sentences = list(sentences)
    tokens = [token for sentence in sentences for token in sentence]
    if not tokens:
        return 0.0
    letters = sum(letter.isalnum() for token in tokens for letter in token)
    return 4.71 * letters / len(tokens) + 0.5 * len(tokens) / len(sentences) - 21.43


def pages(root: Path) -> list[Page]:
    """The pages of ``docs/`` below a folder, by name."""
    return [Page(path.name, path.read_text(encoding="utf-8")) for path in sorted((root / "docs").glob("*.md"))]


def bindings(tree: ast.AST) -> Counter[str]:
    """How often a name is bound: assigned, a parameter, a loop's or a handler's variable."""
    names: Counter[str] = Counter()
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name) | ast.ExceptHandler(name=str(name)):
                names[name] += 1
            case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                names[name] += 1
    return names


def report_pages(result: list[Page]) -> Iterator[str]:
    """Words and readability of each page and of all, as lines of text."""
    yield f"pages of docs/: {len(result)}, words {sum(page.words for page in result):,}"
    together = [sentence for page in result for sentence in page.sentences]
    if together:
        length = sum(map(len, together)) / len(together)
        yield f"readability index (ARI, a school grade): {readability(together):.1f}, {length:.1f} words a sentence"
    for page in result:
        yield f"    {page.name}: {page.words:,} words, index {readability(page.sentences):.1f}"
