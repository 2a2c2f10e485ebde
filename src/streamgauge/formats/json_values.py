"""JSON text piece by piece: successive values on one or several lines, numbers as written, paths.

Values follow each other as in NDJSON or RFC 7464, or indented; the items of a top-level array can be read one by one.
Paths are those of JSONPath (RFC 9535) without filters and descendants: ``$.meta.time``, ``readings[*].value``.
"""

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from streamgauge.formats.bounds import check_characters, unique_members

_TOKEN: Final = re.compile(rb'"(?:[^"\\]|\\.)*"|[\[\]{}]')
_STEP: Final = re.compile(r"""\.?([\w@:-]+)|\[\s*(?:'([^']*)'|"([^"]*)"|(-?\d+)|(\*))\s*\]|\.(\*)""")
_BLANK: Final = b" \t\r\n\x1e"
_BETWEEN: Final = _BLANK + b","


class JsonNumber(str):
    """A number of JSON, as written."""

    __slots__ = ()


def json_value(text: bytes) -> Any:
    """The value of a text, its numbers as ``JsonNumber``; ValueError."""
    try:
        value = json.loads(
            text.decode(),
            parse_int=JsonNumber,
            parse_float=JsonNumber,
            parse_constant=_no_number,
            object_pairs_hook=unique_members,
        )
    except json.JSONDecodeError as error:
        rest = error.doc[error.pos : error.pos + 20]
        raise ValueError(f"not JSON from character {error.pos + 1} on: {rest!r}") from error
    except UnicodeDecodeError as error:
        raise ValueError(f"not UTF-8 text: {error.reason}") from error
    except RecursionError as error:
        raise ValueError("objects and arrays are nested too deeply: write them flatter") from error
    if rb"\u" in text:  # only an escape can name half of a surrogate pair
        check_characters(value)
    return value


def shown(value: Any) -> str:
    """The beginning of a value as JSON, for a sentence."""
    return (value if isinstance(value, JsonNumber) else json.dumps(value, ensure_ascii=False))[:60]


def _no_number(name: str) -> Any:
    raise ValueError(f"not JSON: {name} is not a number")


@dataclass
class JsonText:
    """A text that comes in lines; ``limit`` is the maximum size of a value in bytes.

    With ``items`` a top-level array is split into its items. ``open``: a value has no end yet.
    """

    limit: int
    items: bool = False
    open: bool = False

    def values(self, lines: Iterable[tuple[int, bytes]]) -> Iterator[tuple[int, bytes]]:
        """(first line, text) of each value; ValueError for one that is too long or has no end.

        Words, numbers and brackets between values are yielded too, so that the caller refuses them.
        """
        scan = _Scan(self.items)
        for count, line in lines:
            # Most input is one object on each line, which needs no tokens.
            if not scan.depth and (plain := line.strip(_BLANK)) and _is_whole(plain):
                yield count, plain
                continue
            yield from scan.values(count, line)
            self.open = scan.depth > 0
            if scan.size > self.limit:
                raise ValueError(f"a value that begins on line {scan.begun} has more than {self.limit} bytes")
        if scan.depth:
            raise ValueError(f"the value that begins on line {scan.begun or scan.array} has no end")


@dataclass
class _Scan:
    """The brackets of a text: ``begun`` is the first line of the value that is open, ``array`` that of its array.

    Worked example, ``[{"a": 1}, 5]`` with ``items``: the array's bracket sets ``base`` to 1, the brace at depth 2
    begins a value, and ``5`` is between values, as nothing is open but the array. Without ``items`` the base stays 0,
    and the bracket itself begins a value.
    """

    items: bool
    depth: int = 0
    base: int = 0
    begun: int = 0
    array: int = 0
    size: int = 0
    parts: list[bytes] = field(default_factory=list)

    def values(self, count: int, line: bytes) -> Iterator[tuple[int, bytes]]:
        """(first line, text) of the values that end in a line, and of what stands between them."""
        start = 0
        for token in _TOKEN.finditer(line):
            sign = token[0]
            if sign in b"[{":
                self.depth += 1
                if not self.begun:
                    yield from _between(count, line[start : token.start()])
                    start = self._open(count, sign, token)
            elif sign in b"]}" and self.begun:
                self.depth -= 1
                if self.depth == self.base:
                    yield self.begun, b"".join(self.parts) + line[start : token.end()]
                    self.parts, self.size, self.begun, start = [], 0, 0, token.end()
            elif sign == b"]" and self.base:
                yield from _between(count, line[start : token.start()])
                self.depth, self.base, start = 0, 0, token.end()
        if not self.begun:
            yield from _between(count, line[start:])
            return
        self.size += len(line) - start
        self.parts.append(line[start:])

    def _open(self, count: int, sign: bytes, token: re.Match[bytes]) -> int:
        """Where the text of a value begins, or the first item of an array."""
        if self.items and self.depth == 1 and sign == b"[":
            self.base, self.array = 1, count
            return token.end()
        self.begun = count
        return token.start()


def _between(count: int, text: bytes) -> Iterator[tuple[int, bytes]]:
    """A number, text or bracket between values, if there is any."""
    if rest := text.strip(_BETWEEN):
        yield count, rest


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
