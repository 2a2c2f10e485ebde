"""Names as people write them: found in any case; of a name that is none, those there are and the one most like it."""

from collections.abc import Iterable
from difflib import get_close_matches

_ALIKE = 0.6
"""How like a name must be to be meant: the share of letters that two names have in common, in their order."""


def spelled(name: str, known: Iterable[str]) -> str | None:
    """The known name that is written so, in any case; ``None`` when none is, or several are but for their case."""
    names = list(known)
    if name in names:
        return name
    found = [each for each in names if each.casefold() == name.casefold()]
    return found[0] if len(found) == 1 else None


def meant(name: str, known: Iterable[str]) -> str:
    """``; did you mean csparql?`` where a known name is like this one, else nothing.

    ``meant("csparkle", ["cqels", "csparql"])`` is ``"; did you mean csparql?"``.
    """
    folded = {each.casefold(): each for each in known}
    near = get_close_matches(name.casefold(), folded, 1, _ALIKE)
    return f"; did you mean {folded[near[0]]}?" if near else ""


def offered(name: str, known: Iterable[str]) -> str:
    """The names there are, and the one that was meant: ``there are cqels, csparql; did you mean csparql?``."""
    names = list(known)
    return f"there are {', '.join(names)}{meant(name, names)}" if names else "there are none"
