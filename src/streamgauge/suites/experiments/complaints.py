"""The errors of an experiment file, in sentences that name the file, the line and the key."""

import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from pydantic import ValidationError

from streamgauge.model.expectations import expectation
from streamgauge.model.spelling import meant

Allowed: TypeAlias = Callable[[Sequence[str]], list[str]]
"""The keys that the table of this path may have."""

_OF_UNIONS = ("literal[", "float", "constrained", "int", "str", "function-")
_KEY = re.compile(r"\s*([\w.-]+)\s*=")


def not_toml(path: Path, text: str, error: tomllib.TOMLDecodeError) -> str:
    """The sentence for a text that is no TOML: the line where reading ended, and how lines are written."""
    found = re.search(r"line (\d+)", str(error))
    lines = text.splitlines()
    number = min(int(found[1]) if found else len(lines), max(1, len(lines)))
    shown = lines[number - 1].strip()[:80] if lines else ""
    return f"{path}:{number}: not TOML: {shown!r}: a line is [table], or key = value, where text is in quotes"


def complaints(error: ValidationError, path: Path, text: str, allowed: Allowed) -> Iterator[str]:
    """A sentence for each key that is wrong; several problems of one key are one sentence.

    A key that is missing is not told of where one that is like it was written in its place, nor is a list that is
    empty because its entries are wrong.
    """
    by_key: dict[tuple[str, ...], list[Any]] = {}
    for problem in error.errors():
        keys = tuple(str(key) for key in problem["loc"] if not str(key).startswith(_OF_UNIONS))
        by_key.setdefault(keys, []).append(problem)
    for keys, problems in by_key.items():
        if not _follows(keys, problems, by_key, allowed):
            line = line_of(text, keys)
            where = f"{path}:{line}" if line else str(path)
            yield f"{where}: {'.'.join(keys) or 'the file'}{_said(keys, problems, allowed)}"


def _follows(
    keys: tuple[str, ...], problems: Sequence[Any], by_key: Mapping[tuple[str, ...], Any], allowed: Allowed
) -> bool:
    """Whether a problem is there only because of another one."""
    kind = problems[0]["type"]
    if kind == "too_short":
        return any(other[: len(keys)] == keys and other != keys for other in by_key)
    written = (other for other, found in by_key.items() if found[0]["type"] == "extra_forbidden")
    return kind == "missing" and any(
        other[:-1] == keys[:-1] and meant(other[-1], allowed(other[:-1])).endswith(f" {keys[-1]}?") for other in written
    )


def _said(keys: Sequence[str], problems: Sequence[Any], allowed: Allowed) -> str:
    kind = problems[0]["type"]
    if kind == "missing":
        return " is missing"
    if kind == "extra_forbidden":
        known = allowed(keys[:-1])
        return f": there is no such key; allowed here: {', '.join(known)}{meant(keys[-1], known)}"
    if list(keys) == ["engine"] and isinstance(problems[0].get("input"), dict):
        return ": write [[engine]], as there may be several"
    first, *others = map(expectation, problems)
    more = [other.partition(": expected ")[2] for other in others]
    return f": {' or '.join([first, *filter(None, more)])}"


def line_of(text: str, keys: Sequence[str]) -> int | None:
    """The line (from 1) of a key in a TOML text: its own, else its table's; ``None`` when neither is written."""
    table, found = "", None
    wanted = [key for key in keys if not key.isdigit()]
    for number, line in enumerate(text.splitlines(), 1):
        if header := re.match(r"\s*\[+\s*([\w.\"-]+)\s*\]+", line):
            table = header[1]
            if table == ".".join(wanted[: table.count(".") + 1]):
                found = found or number
        elif key := _KEY.match(line):
            full = f"{table}.{key[1]}".strip(".")
            if full == ".".join(wanted):
                return number
    return found
