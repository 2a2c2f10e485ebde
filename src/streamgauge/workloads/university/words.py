"""The names and words of the Extended Data Set: a small list of our own, or the census of the package ``names``."""

import tomllib
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable

from streamgauge.workloads.parameters import ParameterError


@dataclass(frozen=True, slots=True)
class Words:
    """What values of the Extended Data Set are made of."""

    first: tuple[str, ...]
    last: tuple[str, ...]
    places: tuple[str, ...]
    subjects: tuple[str, ...]
    manners: tuple[str, ...]


LISTS = ("own", "census")


@cache
def words(name: str) -> Words:
    """``own``: the small list; ``census``: the United States' names of 1990, ParameterError when they are absent."""
    text = (resources.files(__package__) / "words.toml").read_text(encoding="utf-8")
    own = Words(**{key: tuple(listed.split()) for key, listed in tomllib.loads(text).items()})
    if name == "own":
        return own
    try:
        folder = resources.files("names")
    except ModuleNotFoundError as error:
        raise ParameterError("university: extended census needs a package: pip install 'streamgauge[names]'") from error
    first = _column(folder, "dist.female.first") + _column(folder, "dist.male.first")
    return replace(own, first=first, last=_column(folder, "dist.all.last"))


def _column(folder: Traversable, name: str) -> tuple[str, ...]:
    """The names of a census file, its first column, in capitals there."""
    lines = (folder / name).read_text(encoding="ascii").splitlines()
    return tuple(line.split()[0].capitalize() for line in lines if line.strip())
