"""Wrong values in our own words: what was given, and what was expected in its place."""

from collections.abc import Callable, Mapping
from typing import Any, Final

_Limits = Mapping[str, Any]

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
"""By the first word of the problem's type (``int_parsing``, ``int_type``, ``int_from_float``)."""

_BOUNDS: Final[Mapping[str, Callable[[_Limits], str]]] = {
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
    """A problem that pydantic found (an entry of ``ValidationError.errors()``) as a clause for people.

    ``{"type": "int_parsing", "input": "ten", ...}`` is ``"'ten': expected a whole number"``. A sentence of ours, which
    a validator raised, is given as it is.
    """
    kind, limits = str(problem["type"]), problem.get("ctx") or {}
    if kind == "missing":
        return "is missing"
    if kind in ("value_error", "assertion_error"):
        return str(problem["msg"]).removeprefix("Value error, ").removeprefix("Assertion failed, ").removesuffix(".")
    bound = _BOUNDS.get(kind)
    wanted = _KINDS.get(kind.split("_")[0], "another value") if bound is None else bound(limits)
    return f"{_given(problem.get('input'))}: expected {wanted}"


def _given(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
