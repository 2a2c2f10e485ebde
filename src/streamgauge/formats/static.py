"""Static triples in a file, for static data that is too large for memory or for one line of JSON."""

from collections.abc import Collection, Iterator
from pathlib import Path

from streamgauge.formats.lines import LineError
from streamgauge.model.terms import Triple


class StaticFile(Collection[Triple]):
    """The triples of an N-Triples file, canonical terms, one triple to a line; read anew by each iteration.

    LineError names the line that is no triple; OSError when the file cannot be read.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with path.open("rb") as file:
            self._count = sum(block.count(b"\n") for block in iter(lambda: file.read(1 << 20), b""))

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Triple]:
        with self.path.open(encoding="utf-8", newline="\n") as file:
            for number, line in enumerate(file, 1):
                terms = line.split(" ", 2)
                if len(terms) != 3 or not terms[2].endswith(" .\n"):
                    raise LineError(f"{self.path}:{number}: expected a canonical N-Triples line: s p o .")
                yield terms[0], terms[1], terms[2][:-3]

    def __contains__(self, triple: object) -> bool:
        return any(triple == each for each in self)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, StaticFile | tuple):
            return NotImplemented
        return len(self) == len(other) and all(mine == theirs for mine, theirs in zip(self, other, strict=True))

    def __hash__(self) -> int:
        return hash(len(self))
