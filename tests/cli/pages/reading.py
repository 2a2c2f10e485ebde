"""A page read from its first block to its last: files saved, commands run, outputs compared.

Needs nothing but the standard library and an installed Streamgauge (tests/installation runs it with one).
"""

import re
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from tests.cli.pages.markdown import Block
from tests.cli.pages.shell import Shell, same

ROOT: Final = Path(__file__).resolve().parents[3]
PROGRAMS: Final = ("curl", "mosquitto", "node")
"""Programs of others that blocks call."""


class MissingProgramError(Exception):
    """A program that a block calls is not here; the text names both."""


def read_page(blocks: Iterable[Block], shell: Shell, *, proven: bool) -> None:
    """Do what a reader of the page does, block by block; AssertionError, or MissingProgramError before it is needed."""
    for block in blocks:
        if "folder" in block.marks:
            enter(block.marks["folder"], shell)
        if "illustration" in block.marks or ("prove" in block.marks and not proven):
            continue
        if block.runs:
            _look_for_programs(block)
            shell.run(block)
        elif "output" in block.marks:
            shown = f"{block.place} shows\n{block.text}\nbut what is printed is\n{shell.said}"
            assert same(block.text, shell.said), shown
        else:
            _write(block, shell.folder)


def enter(folder: str, shell: Shell) -> None:
    """The reader goes to a folder of the repository: a copy of it."""
    target = shell.home / "reader" / folder
    if not target.exists():
        shutil.copytree(ROOT / folder, target, ignore=shutil.ignore_patterns("runs", "capacity", "__pycache__"))
    shell.folder = target


def _look_for_programs(block: Block) -> None:
    for name in PROGRAMS:
        if re.search(rf"(?m)^\s*{name} |program '{name} ", block.text) and shutil.which(name) is None:
            raise MissingProgramError(f"{block.place}: {name} is not here")


def _write(block: Block, folder: Path) -> None:
    """The reader saves a block as the file that it shows; one that the folder has is the same."""
    assert block.file is not None, block.place
    file = folder / block.file
    if file.exists():
        shown, kept = block.text.strip(), file.read_text().strip()
        assert kept.partition(f"# {block.file}\n")[2] == shown or kept == shown or kept.endswith(shown), (
            f"{block.place}: {block.file} is another in the folder"
        )
    else:
        file.write_text(block.text)
