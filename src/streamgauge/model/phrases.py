"""Wording of messages: counts with nouns, dates, suggestions for misspelt names, expected values."""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from difflib import get_close_matches
from typing import Any, Final

_KINDS: Final[Mapping[str, str]] = {
    "int": "a whole number",
    "float": "a number",
    "decimal": "a number",
    "bool": "true or false",
    "string": "text, in quotes",
    "list": "a list, as in [1, 2]",
    "tuple": "a list, as in [1, 2]",
    "dict": "a table of names and values",
    "model": "a table of names and values",
    "mapping": "a table of names and values",
    "path": "the path of a file",
    "datetime": "a day or a time, as in 2014-12-06 or 2014-12-06T10:30:00",
    "date": "a day, as in 2014-12-06",
    "is": "another kind of value",
    "finite": "a finite number",
}
"""Expected kinds of values, by the first word of pydantic's error type (``int_parsing``, ``int_type``)."""

_BOUNDS: Final[Mapping[str, Callable[[Mapping[str, Any]], str]]] = {
    "greater_than_equal": lambda limits: f"at least {limits['ge']:g}",
    "greater_than": lambda limits: f"more than {limits['gt']:g}",
    "less_than_equal": lambda limits: f"at most {limits['le']:g}",
    "less_than": lambda limits: f"less than {limits['lt']:g}",
    "too_short": lambda limits: f"at least {limits.get('min_length', 1)} of them",
    "too_long": lambda limits: f"at most {limits.get('max_length', 1)} of them",
    "literal_error": lambda limits: f"{limits['expected']}",
    "enum": lambda limits: f"{limits['expected']}",
}


def expectation(problem: Mapping[str, Any]) -> str:
    """A problem found by pydantic (an entry of ``ValidationError.errors()``) as a clause.

    ``{"type": "int_parsing", "input": "ten", ...}`` is ``"'ten': expected a whole number"``. Sentences of our own
    validators are returned unchanged.
    """
    kind, limits = str(problem["type"]), problem.get("ctx") or {}
    if kind == "missing":
        return "is missing"
    if kind in ("value_error", "assertion_error"):
        return str(problem["msg"]).removeprefix("Value error, ").removeprefix("Assertion failed, ").removesuffix(".")
    bound = _BOUNDS.get(kind)
    wanted = _KINDS.get(kind.split("_")[0], "another value") if bound is None else bound(limits)
    return f"{_shown(problem.get('input'))}: expected {wanted}"


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def counted(count: int, noun: str) -> str:
    """A count with its noun: ``1 window``, ``2,000 windows``, ``2 queries``."""
    if count == 1:
        return f"{count:,} {noun}"
    # Nouns in -ay or -ey, which only take an s, do not end in "ry".
    return f"{count:,} {noun[:-1]}ies" if noun.endswith("ry") else f"{count:,} {noun}s"


def elapsed(seconds: float) -> str:
    """A time in words: ``50 s``, ``2 min 10 s``, ``3 h 5 min``."""
    minutes, rest = divmod(int(seconds), 60)
    if minutes < 1:
        return f"{rest} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"


_EPOCH: Final = datetime(1970, 1, 1)
_YEARS: Final = range(-62_135_596_800_000, 253_402_300_800_000)
"""Times (ms) of the years that ``datetime`` has, 1 to 9999."""

_RELATIVE: Final = 10**11
"""Stream times (ms) nearer to 0 than this, of 1966 to 1973, count from the beginning of a recording."""


def is_dated(ms: float) -> bool:
    """Whether a stream time is taken to count from 1970: of the years 1 to 1966 and 1973 to 9999."""
    return abs(ms) >= _RELATIVE and int(ms) in _YEARS


def date_text(ms: float, *, always: bool = False) -> str | None:
    """Date and time in UTC, to the millisecond; ``None`` unless the time ``is_dated``, or ``always`` of year 1 to 9999.

    ``date_text(1_763_900_000_250)`` is ``"2025-11-23 12:13:20.250Z"``.
    """
    if not (is_dated(ms) or (always and int(ms) in _YEARS)):
        return None
    # ``fromtimestamp`` refuses years before 1970 on some systems; adding to the epoch does not.
    seconds, rest = divmod(int(ms), 1000)
    moment = _EPOCH + timedelta(seconds=seconds)
    return f"{moment.isoformat(sep=' ')}{f'.{rest:03d}' if rest else ''}Z"


_ALIKE = 0.6
"""Minimum similarity (``difflib`` ratio) of a known name for it to be suggested."""


def spelled(name: str, known: Iterable[str]) -> str | None:
    """The known name that equals ``name`` up to case; ``None`` if none does, or several do."""
    names = list(known)
    if name in names:
        return name
    # Two names that differ in case only are both exact names: neither can be guessed.
    matches = [candidate for candidate in names if candidate.casefold() == name.casefold()]
    return matches[0] if len(matches) == 1 else None


def meant(name: str, known: Iterable[str]) -> str:
    """``; did you mean csparql?`` if a known name is similar, else an empty text.

    ``meant("csparkle", ["cqels", "csparql"])`` is ``"; did you mean csparql?"``.
    """
    folded = {name_.casefold(): name_ for name_ in known}
    near = get_close_matches(name.casefold(), folded, 1, _ALIKE)
    return f"; did you mean {folded[near[0]]}?" if near else ""


def offered(name: str, known: Iterable[str]) -> str:
    """The known names, with a suggestion: ``there are cqels, csparql; did you mean csparql?``."""
    names = list(known)
    return f"there are {', '.join(names)}{meant(name, names)}" if names else "there are none"
