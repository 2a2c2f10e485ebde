"""The lines that are mutated: drawn by a seed, from every file as many as its share of all lines that can be."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

from tests.mutants.mutant import Mutant

if TYPE_CHECKING:
    from tests.mutants.mutations import MutableFile


def texts(sources: Path, folders: Sequence[str], without: Sequence[str] = ()) -> dict[str, str]:
    """The source files of some folders by name, without those whose tests are not run here."""
    result = (
        path.relative_to(sources).as_posix() for folder in folders for path in sorted((sources / folder).glob("*.py"))
    )
    return {name: (sources / name).read_text("utf-8") for name in result if name not in without}


def files(originals: Mapping[str, str], only: Sequence[str] = ()) -> "list[MutableFile]":
    """The files that have something to mutate, of those whose names end so if any are given."""
    from tests.mutants.mutations import MutableFile

    wanted = (name for name in originals if not only or name.endswith(tuple(only)))
    return [file for name in wanted if (file := MutableFile(name, originals[name])).lines]


def shares(lines: Mapping[str, int], count: int) -> dict[str, int]:
    """How many of ``count`` each file gets by its lines: at least one, the largest remainders rounded up."""
    total = sum(lines.values())
    wanted = {name: max(1.0, count * line / total) for name, line in lines.items()}
    given = {name: min(int(item), lines[name]) for name, item in wanted.items()}
    order = sorted(lines, key=lambda name: (given[name] - wanted[name], name))
    while sum(given.values()) < min(count, total):
        for name in order:
            if sum(given.values()) < count and given[name] < lines[name]:
                given[name] += 1
    return given


def draw(mutable: "Sequence[MutableFile]", count: int, seed: int) -> list[Mutant]:
    """So many mutants, each of another line; a file's are drawn by the seed and its name, whatever others have."""
    given = shares({entry.name: len(entry.lines) for entry in mutable}, count)
    return [
        mutant for entry in mutable for mutant in _of_file(entry, given[entry.name], Random(f"{seed} {entry.name}"))
    ]


def _of_file(mutable: "MutableFile", count: int, random: Random) -> list[Mutant]:
    """One change each of lines in random order until there are enough, without those whose changes change nothing."""
    results: list[Mutant] = []
    lines = sorted(mutable.lines)
    random.shuffle(lines)
    for line in lines:
        if len(results) == count:
            break
        changes = random.sample(mutable.lines[line], len(mutable.lines[line]))
        mutant = next((made for change in changes if (made := mutable.mutant(change)) is not None), None)
        if mutant is not None:
            results.append(mutant)
    return sorted(results, key=lambda item: item.line)
