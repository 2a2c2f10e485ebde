"""The queries of a workload: a folder of ``*.rq`` files with ``${NAME}`` parameters."""

from collections.abc import Callable
from pathlib import Path


class UnknownNameError(ValueError):
    """A workload or query that is not here; the sentence lists those that are."""


def names(folder: Path) -> tuple[str, ...]:
    """The names of the queries in a folder, sorted."""
    return tuple(sorted(file.stem for file in folder.glob("*.rq")))


def reader(owner: str, folder: Path) -> Callable[[str], str]:
    """A workload's ``query``: the text of a query by name; UnknownNameError lists the queries there are."""

    def query(name: str) -> str:
        if name not in names(folder):
            raise UnknownNameError(f"workload {owner} has no query {name!r}: it has {', '.join(names(folder))}")
        return (folder / f"{name}.rq").read_text(encoding="utf-8")

    return query
