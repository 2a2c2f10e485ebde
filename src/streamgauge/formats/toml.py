"""Positions in TOML texts, and the message for an invalid one."""

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

_KEY = re.compile(r"\s*(\"?)([\w.-]+)\1\s*=")


def not_toml(path: Path, text: str, error: ValueError) -> str:
    """The message for a text that is not TOML: the line where parsing failed, and how lines are written.

    ``error`` is a TOMLDecodeError, or the ValueError that CPython raises for an integer of thousands of digits.
    """
    match = re.search(r"line (\d+)", str(error))
    lines = text.splitlines()
    # Parsers may name the line after the last one, for example for a bracket that is never closed.
    number = min(int(match[1]) if match else len(lines), max(1, len(lines)))
    shown = lines[number - 1].strip()[:80] if lines else ""
    return f"{path}:{number}: not TOML: {shown!r}: a line is [table], or key = value, where text is in quotes"


def line_of(text: str, keys: Sequence[str]) -> int | None:
    """The line (from 1) of a key in a TOML text, else that of its table; ``None`` if neither occurs.

    A number among the keys is an index in an array of tables: ``engine.1.name`` is in the second ``[[engine]]``.
    """
    table, line_found = "", None
    entries: Counter[str] = Counter()
    wanted = ".".join(keys)
    for number, line in enumerate(text.splitlines(), 1):
        if header := re.match(r"\s*(\[+)\s*([\w.\"-]+)\s*\]+", line):
            table = header[2]
            # Two brackets: an item of an array of tables, which has its place in the array as a further key.
            if len(header[1]) > 1:
                table = f"{header[2]}.{entries[header[2]]}"
                entries[header[2]] += 1
            if f"{wanted}.".startswith((f"{table}.", f"{header[2]}.")):
                line_found = line_found or number
                if wanted.startswith(f"{table}."):
                    line_found = number
        elif (key := _KEY.match(line)) and f"{table}.{key[2]}".strip(".") == wanted:
            return number
    return line_found
