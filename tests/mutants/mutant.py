"""A mutant: a file with one change. Without libcst, which makes them and takes 0.8 s of CPU to import."""

from dataclasses import dataclass, field
from difflib import unified_diff


@dataclass(frozen=True, slots=True)
class Mutant:
    """A file with one change; ``file`` is relative to the sources, ``function`` is dotted, empty outside of any."""

    file: str
    line: int
    function: str
    before: str
    after: str
    source: str = field(repr=False)

    @property
    def key(self) -> tuple[str, str, str, str]:
        """The same for a mutant when lines elsewhere in its file change."""
        return self.file, self.function, self.before, self.after


def difference(before: str, after: str, name: str) -> str:
    """The changed lines of a file with two around them."""
    return "\n".join(unified_diff(before.splitlines(), after.splitlines(), name, name, lineterm="", n=2))


def lines_of(before: str, after: str, side: str) -> str:
    """What one side has alone, on one line."""
    changed = list(unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=0))[2:]
    return " ".join(line[1:].strip() for line in changed if line.startswith(side))
