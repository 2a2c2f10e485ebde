"""What became of the mutants, in words: a row per file, then each survivor as a difference."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from tests.mutants.mutant import Mutant, difference
from tests.mutants.trial import Tried

ENDS: Final = ("caught", "timed out", "equivalent", "survived")


@dataclass(frozen=True, slots=True)
class Ended:
    """A mutant of a file that was ``original``, and how it ended."""

    mutant: Mutant
    tried: Tried
    original: str


def share(ended: Sequence[Ended]) -> float:
    """The share that the tests catch, in percent, of those that they can; an endless loop is caught."""
    ends = Counter(item.tried.ended for item in ended)
    possible = len(ended) - ends["equivalent"]
    return 100 * (ends["caught"] + ends["timed out"]) / possible if possible else 100.0


def table(ended: Sequence[Ended]) -> str:
    """A row per file and one for all."""
    files = sorted({item.mutant.file for item in ended})
    width = max(map(len, (*files, "all files")))
    head = " ".join(
        [f"{'':{width}}", f"{'mutants':>8}", *(f"{name:>10}" for name in ENDS), f"{'caught of possible':>19}"]
    )
    rows = [_row(file, width, [item for item in ended if item.mutant.file == file]) for file in files]
    return "\n".join([head, *rows, _row("all files", width, ended)])


def _row(name: str, width: int, ended: Sequence[Ended]) -> str:
    ends = Counter(item.tried.ended for item in ended)
    counts = " ".join(f"{ends[end]:10}" for end in ENDS)
    return f"{name:{width}} {len(ended):8} {counts} {share(ended):17.1f} %"


def survivors(ended: Sequence[Ended]) -> str:
    """Every survivor: where, after how many tests, and the difference."""
    left = [item for item in ended if item.tried.ended == "survived"]
    return "\n\n".join(
        f"{item.mutant.file}:{item.mutant.line} in {item.mutant.function or 'the module'}, survived "
        f"{item.tried.ran or 'no'} tests\n{difference(item.original, item.mutant.source, item.mutant.file)}"
        for item in left
    )
