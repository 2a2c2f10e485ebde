"""The fenced blocks of a Markdown page, with the marks that stand before them in HTML comments.

A mark is ``<!-- NAME: text -->`` on the lines before a fence, which readers do not see:

- ``illustration`` with the reason why the block cannot be run;
- ``file`` with the name of the file that the block shows (or the block's first line is the comment ``# NAME.toml``);
- ``output``: the block shows what the block before it prints;
- ``folder``: from here on the reader is in this folder of the repository (``examples``); a fresh, empty one otherwise;
- ``prove`` with the reason why the block is run by `make prove` only;
- ``heavy`` with the reason why the page takes over 20 s.
"""

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

MARKS: Final = ("illustration", "file", "output", "folder", "prove", "heavy")
FENCE: Final = re.compile(r"( *)```(\S*)$")
MARK: Final = re.compile(r" *<!-- (\w+)(?:: (.+))? -->$")
NAMED: Final = re.compile(r"# ([\w.-]+\.(?:toml|rq|ttl|trig|nq|jsonl|csv))\b")
SHELLS: Final = ("sh", "bash", "console")
"""Languages of blocks that a shell runs."""


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block: its page, the line of its fence (from 1), its language, its text and its marks."""

    page: str
    line: int
    language: str
    text: str
    marks: dict[str, str] = field(default_factory=dict)

    @property
    def place(self) -> str:
        """Where the block is, as editors say it."""
        return f"{self.page}:{self.line}"

    @property
    def file(self) -> str | None:
        """The name of the file that the block shows."""
        match = NAMED.match(self.text)
        return self.marks.get("file") or (match[1] if match and self.language not in SHELLS else None)

    @property
    def runs(self) -> bool:
        """Whether a shell or Python runs the block."""
        return "illustration" not in self.marks and self.language in (*SHELLS, "python")


def page_blocks(page: Path) -> list[Block]:
    """The blocks of a page in order; a mark whose name is none, or a fence left open, is a ValueError."""
    return read_blocks(page.name, page.read_text())


def read_blocks(name: str, text: str) -> list[Block]:
    """The blocks of a page's text."""
    results: list[Block] = []
    marks: dict[str, str] = {}
    lines = enumerate(text.splitlines(), 1)
    for number, line in lines:
        if mark := MARK.match(line):
            if mark[1] not in MARKS:
                raise ValueError(f"{name}:{number}: no mark {mark[1]!r}: there are {', '.join(MARKS)}")
            marks[mark[1]] = mark[2] or ""
        elif fence := FENCE.match(line):
            indent, inside = fence[1], []
            for _, inner in lines:
                if inner == f"{indent}```":
                    break
                inside.append(inner.removeprefix(indent))
            else:
                raise ValueError(f"{name}:{number}: the block has no end")
            results.append(Block(name, number, fence[2], "\n".join(inside) + "\n", marks))
            marks = {}
        elif line.strip():
            marks = {}
    return results


def complaint(block: Block, before: Block | None, commands: str) -> str | None:
    """Why a block is neither run nor checked nor marked; ``commands`` are all that the page runs."""
    if "illustration" in block.marks:
        reason = block.marks["illustration"]
        return None if len(reason) >= len("Docker") else f"{block.place}: the mark `illustration` has no reason"
    if block.runs:
        return None
    if "output" in block.marks:
        return None if before is not None and before.runs else f"{block.place}: no block before it prints anything"
    if block.file is None:
        return (
            f"{block.place}: neither runnable nor marked: give it a language (sh, console, python), the name of its "
            f"file (`# NAME.toml`, or <!-- file: NAME -->), or <!-- illustration: REASON -->"
        )
    return None if block.file in commands else f"{block.place}: no command of the page names {block.file}"
