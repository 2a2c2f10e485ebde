"""JSON text piece by piece: successive values on one or several lines, numbers as written, paths.

Values follow each other as in NDJSON or RFC 7464, or indented; the items of a top-level array can be read one by one.
Paths are those of JSONPath (RFC 9535) without filters and descendants: ``$.meta.time``, ``readings[*].value``.
"""

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

_TOKEN: Final = re.compile(rb'"(?:[^"\\]|\\.)*"|[\[\]{}]')
_STEP: Final = re.compile(r"""\.?([\w@:-]+)|\[\s*(?:'([^']*)'|"([^"]*)"|(-?\d+)|(\*))\s*\]|\.(\*)""")
_BLANK: Final = b" \t\r\n\x1e"


class JsonNumber(str):
    """A number of JSON, as written."""

    __slots__ = ()


def json_value(text: bytes) -> Any:
    """The value of a text, its numbers as ``JsonNumber``; ValueError."""
    try:
        return json.loads(text, parse_int=JsonNumber, parse_float=JsonNumber, parse_constant=_no_number)
    except json.JSONDecodeError as error:
        raise ValueError(f"not JSON from character {error.pos + 1} on") from error
    except UnicodeDecodeError as error:
        raise ValueError(f"not UTF-8 text: {error.reason}") from error
    except RecursionError as error:
        raise ValueError("objects and arrays are nested too deeply: write them flatter") from error


def _no_number(name: str) -> Any:
    raise ValueError(f"not JSON: {name} is not a number")


@dataclass
class JsonText:
    """A text that comes in lines; ``limit`` is the maximum size of a value in bytes.

    With ``items`` a top-level array is split into its items.
    """

    limit: int
    items: bool = False

    def values(self, lines: Iterable[tuple[int, bytes]]) -> Iterator[tuple[int, bytes]]:
        """(first line, text) of each value; ValueError for one that is too long or has no end."""
        depth, base, begun, size = 0, 0, 0, 0
        parts: list[bytes] = []
        count = 0
        for count, line in lines:
            start = 0
            # Most input is one object on each line, which needs no tokens.
            if not depth and (plain := line.strip(_BLANK)) and _is_whole(plain):
                yield count, plain
                continue
            for token in _TOKEN.finditer(line):
                sign = token[0]
                if sign in b"[{":
                    depth += 1
                    if depth == 1 and sign == b"[" and self.items:
                        # The array itself is left out: its items are values at depth 1.
                        base, start = 1, token.end()
                    # Worked example, ``[{"a": 1},`` with ``items``: the array's bracket sets ``base`` to 1, and the
                    # brace at depth 2 begins a value. Without ``items`` the base stays 0, and the bracket itself would
                    # begin one.
                    elif depth == base + 1:
                        begun, start = count, token.start()
                elif sign in b"]}":
                    depth -= 1
                    if depth == base and (parts or start <= token.start()) and begun:
                        yield begun, b"".join(parts) + line[start : token.end()]
                        parts, size, begun, start = [], 0, 0, token.end()
                    elif depth <= 0:
                        depth, base, start = 0, 0, token.end()
            if begun:
                size += len(line) - start
                if size > self.limit:
                    raise ValueError(f"a value that begins on line {begun} has more than {self.limit} bytes")
                parts.append(line[start:])
            # A number or text between values, which the caller refuses with its line.
            elif not depth and line[start:].strip(_BLANK):
                yield count, line[start:].strip(_BLANK)
        if begun or depth:
            raise ValueError(f"the value that begins on line {begun or 1} has no end")


def has_value(text: bytes) -> bool:
    """Whether a text begins with a complete value, or with an array's first item."""
    lines = enumerate(text.splitlines(keepends=True), 1)
    try:
        return next(JsonText(len(text), items=True).values(lines), None) is not None
    except ValueError:
        return False


def _is_whole(line: bytes) -> bool:
    """Whether a line is certainly one object: the usual line of NDJSON."""
    return line[:1] == b"{" and line[-1:] == b"}" and line.count(b"{") == line.count(b"}") == 1


@dataclass(frozen=True, slots=True)
class JsonPath:
    """The steps of a path: names, indexes, ``None`` for all; from the root of the message, or from a row."""

    steps: tuple[str | int | None, ...]
    root: bool = False

    def values(self, data: Any) -> list[Any]:
        """The values at the path, in order."""
        reached = [data]
        for step in self.steps:
            reached = [value for node in reached for value in _children(node, step)]
        return reached


def json_path(text: str) -> JsonPath:
    """Parse a path; ValueError for an unsupported one."""
    root = text.startswith("$")
    rest, steps = text.removeprefix("$"), list[str | int | None]()
    at = 0
    while at < len(rest):
        match = _STEP.match(rest, at)
        if match is None:
            raise ValueError(
                f"{text!r} is not a supported path: use names, [0], [*] and ['name'], as in $.meta.time or rows[*].v"
            )
        name = match[1] or match[2] or match[3]
        steps.append(name if name is not None else int(match[4]) if match[4] else None)
        at = match.end()
    return JsonPath(tuple(steps), root)


def _children(node: Any, step: str | int | None) -> list[Any]:
    if isinstance(node, dict):
        return list(node.values()) if step is None else [node[step]] if step in node else []
    if isinstance(node, list):
        if step is None:
            return node
        if isinstance(step, int):
            # A slice and not an index: a position beyond the array selects nothing (RFC 9535, 2.3.3.2).
            return node[step : step + 1] if step >= 0 else node[step:][:1]
    return []
