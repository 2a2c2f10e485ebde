"""Regular expressions of XPath (F&O 3.1, 5.6), checked and translated by elementpath and matched by RE2.

RE2 needs time proportional to the text, whatever the pattern. Simple patterns on short texts go to Python's ``re``,
which is faster there. Patterns with back-references, which RE2 lacks, and with repetitions above 1,000, which it
refuses, go to the module ``regex`` for at most 0.05 s; one that timed out is not tried again. One detail is RE2's: with
the flag m, ``^`` also matches after a newline at the very end.

Patterns are bounded before they are compiled, because nested counted repetitions multiply: ``(a{1,50}){1,50}`` has
2,500 states. ``expanded`` counts them, and above ``MAX_STATES`` a pattern is a TooLargeError. ``MAX_STEPS`` bounds the
steps of a pattern over a text.
"""

import re
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from typing import Any, Final

import re2

_END: Final = r"$(?!\n\Z)"
_LINE: Final = r"(?<!\n\Z)^"
_DOT: Final = r"[^\r\n]"
_CALM: Final = re.compile(
    r"[^()\[\]{}|*+?\\.$]*(?:\([^()\[\]{}*+?\\.$]*\)|\[[^\[\]\\^-]*\]|\.)?[*+?]?[^()\[\]{}|*+?\\.$]*\$?"
)
"""Patterns with the same meaning in XPath and Python: at most one group, class or dot and one quantifier."""
_MAX_QUICK_TEXT: Final = 1000
_SECONDS: Final = 0.05
_REPLACEMENT: Final = re.compile(r"\\[\\$]|\$[0-9]+|[^\\$]+")
_SPACE: Final = frozenset(" \t\n\r")
_COUNTED: Final = re.compile(r"\{(\d+)(,(\d*))?\}")

MAX_STATES: Final = 10_000
"""Maximum states of a pattern with its counted repetitions expanded, and maximum characters of it."""

MAX_STEPS: Final = 100 * 2**16
"""Maximum product of a pattern's instructions and a text's characters (at most 64 Ki of these).

RE2 takes this many steps of 15 ns if it cannot cache its states. Patterns of 100 instructions match any text.
"""


class PatternError(ValueError):
    """An invalid pattern, flag or replacement, or a match that took too long; an error in SPARQL."""


class TooLargeError(PatternError):
    """A pattern that would take too much memory or time to compile; the message has its size."""


class Pattern:
    """A compiled regular expression; ``pattern`` returns cached ones."""

    def __init__(self, text: str, flags: str) -> None:
        if not set(flags) <= set("imsxq"):
            raise PatternError(f"unknown flag in {flags!r}: i, m, s, x and q are allowed")
        _refuse_large(text, flags)
        self._quick: re.Pattern[str] | None = None
        if not flags and _CALM.fullmatch(text):
            with suppress(re.error):  # such as "*" and "[]", which elementpath refuses
                # Python's ``$`` also matches before a newline at the end, that of XPath does not.
                self._quick = re.compile(text.replace("$", r"\Z"))
        self._general: Any = None
        self._source = text, flags
        if self._quick is None:
            self._general = _compiled(*self._source)

    @property
    def slow(self) -> bool:
        """Whether it may backtrack, for at most 0.05 s per text."""
        return isinstance(self._general, _Limited)

    def _matcher(self, text: str) -> Any:
        if self._quick is not None and len(text) <= _MAX_QUICK_TEXT:
            return self._quick
        if self._general is None:
            self._general = re2.compile(self._source[0].replace("$", r"\z"))
        if self._general.programsize * min(len(text), 2**16) > MAX_STEPS:
            raise PatternError(f"a text of {len(text)} characters is too long for this pattern")
        return self._general

    def found(self, text: str) -> bool:
        """fn:matches: whether a part of the text matches; PatternError if it takes too long."""
        return self._matcher(text).search(text) is not None

    def replaced(self, text: str, replacement: str) -> str:
        """fn:replace: all matches replaced; PatternError if the pattern matches the empty string (FORX0003)."""
        if self.found(""):
            raise PatternError("the pattern matches the empty string")
        matcher = self._matcher(text)
        parts: list[str | int] = [replacement] if "q" in self._source[1] else _parts(replacement, matcher.groups)
        pieces, at = [], 0
        for match in matcher.finditer(text):
            pieces += [
                text[at : match.start()],
                *(part if isinstance(part, str) else match[part] or "" for part in parts),
            ]
            at = match.end()
        return "".join((*pieces, text[at:]))


def pattern(text: str, flags: str = "") -> Pattern:
    """The compiled pattern, cached; PatternError, also cached, for an invalid one."""
    compiled = _known(text, flags)
    if isinstance(compiled, PatternError):
        # A cached exception would collect the traceback of each raise, and keep its frames alive.
        raise compiled.with_traceback(None)
    return compiled


@lru_cache(maxsize=1024)
def _known(text: str, flags: str) -> Pattern | PatternError:
    try:
        return Pattern(text, flags)
    except PatternError as error:
        return error


def expanded(text: str) -> int:
    """The number of states of a pattern with its counted repetitions expanded.

    Worked example, ``(a{0,50}b){3}c``: 50 + 1 in the group, + 1 for the group, three times, + 1: 157.
    """
    totals, last, at = [0], 0, 0
    while at < len(text):
        counted = _COUNTED.match(text, at)
        if counted is not None:
            low, comma, high = counted.groups()
            # Nine digits exceed MAX_STATES already; int() of a text of any length would be slow.
            times = max(1, int(low[:9]) + 1 if comma and not high else int((high or low)[:9]))
            totals[-1] += last * (times - 1)
            last, at = last * times, counted.end()
            continue
        after = _piece(text, at)
        if text[at] == "(":
            totals.append(0)
        elif text[at] == ")" and len(totals) > 1:
            last = totals.pop() + 1
            totals[-1] += last
        elif text[at] not in "*+?":
            last = after - at
            totals[-1] += last
        at = after
    return sum(totals)


def _piece(text: str, at: int) -> int:
    """The end of the character, escape or class that begins at a position."""
    if text[at] == "\\":
        closing = text.find("}", at) if text[at + 1 : at + 3] in ("p{", "P{") else -1
        return closing + 1 if closing >= 0 else min(at + 2, len(text))
    depth, after = 0, at
    while text[at] == "[" and after < len(text):
        depth += {"[": 1, "]": -1}.get(text[after], 0)
        after += 2 if text[after] == "\\" else 1
        if not depth:
            return min(after, len(text))
    return at + 1


def _refuse_large(text: str, flags: str) -> None:
    if len(text) > MAX_STATES:
        raise TooLargeError(f"the pattern has {len(text)} characters, but at most {MAX_STATES} are allowed: shorten it")
    states = 0 if "q" in flags or "{" not in text else expanded(text)
    if states > MAX_STATES:
        raise TooLargeError(
            f"the pattern has {states:.3g} states, more than {MAX_STATES}: nested counted repetitions multiply"
        )


def _parts(replacement: str, groups: int) -> list[str | int]:
    r"""A replacement as literal texts and numbers of groups (F&O 3.1, 5.6.4).

    Worked example: ``a$1\$`` is "a", group 1, "$"; ``$12`` is group 1 and "2" if there are fewer than 12 groups.
    """
    parts: list[str | int] = []
    at = 0
    while at < len(replacement):
        match = _REPLACEMENT.match(replacement, at)
        if match is None:
            raise PatternError(f"a backslash or a dollar sign stands alone in the replacement {replacement!r}")
        text, at = match.group(), match.end()
        if text[0] == "$":
            end = next((n for n in range(len(text), 2, -1) if int(text[1:n]) <= groups), 2)
            number = int(text[1:end])
            parts += [number if number <= groups else "", text[end:]]
        else:
            parts.append(text[1:] if text[0] == "\\" else text)
    return parts


def _compiled(text: str, flags: str) -> Any:
    source = re.escape(text) if "q" in flags else _translated(_prepared(text, "x" in flags), flags)
    inline = "".join(flag for flag in "ims" if flag in flags)
    options = re2.Options()
    # RE2 would report a pattern that it refuses on standard error.
    options.log_errors = False
    try:
        near = source.replace(_END, r"\z").replace(_LINE, "^")
        return re2.compile(f"(?{inline}){near}" if inline else near, options)
    except re2.error:
        pass
    import regex  # late: few patterns are not RE2's

    try:
        return _Limited(regex.compile(f"(?{inline}){source}" if inline else source))
    except (regex.error, OverflowError) as error:
        raise PatternError(f"not a regular expression of XPath: {text!r}: {error}") from error


class _Limited:
    """A pattern of the module ``regex``, which may backtrack: PatternError after 0.05 s, and at once from then on."""

    def __init__(self, compiled: Any) -> None:
        self._compiled = compiled
        self.groups: int = compiled.groups
        self.programsize = 0
        self.slow = False

    def search(self, text: str) -> Any:
        return self._timed(self._compiled.search, text)

    def finditer(self, text: str) -> Any:
        return iter(self._timed(lambda *arguments, **limits: list(self._compiled.finditer(*arguments, **limits)), text))

    def _timed(self, match: Callable[..., Any], text: str) -> Any:
        if not self.slow:
            try:
                # ``concurrent`` releases the interpreter's lock while it matches.
                return match(text, timeout=_SECONDS, concurrent=True)
            except TimeoutError:
                self.slow = True
        raise PatternError("the pattern takes too long on this text, or did on another one")


def _translated(text: str, flags: str) -> str:
    from elementpath.regex import RegexError, translate_pattern  # late: 0.2 s, for few queries

    bits = (re.IGNORECASE if "i" in flags else 0) | (re.MULTILINE if "m" in flags else 0)
    bits |= re.DOTALL if "s" in flags else 0
    try:
        return translate_pattern(text, flags=bits, xsd_version="1.1").replace(_DOT, r"[^\n]")
    except (RegexError, ValueError, IndexError) as error:
        raise PatternError(f"not a regular expression of XPath: {text!r}: {error}") from error


def _prepared(text: str, without_space: bool) -> str:
    r"""The pattern with ``\w``, ``\s`` and ``\d`` in brackets, which elementpath translates by XML Schema, not Python.

    With the flag x, space outside brackets is removed: ``a b[ ]`` is ``ab[ ]``.
    """
    pieces, depth, at = [], 0, 0
    while at < len(text):
        piece = text[at : at + 2] if text[at] == "\\" else text[at]
        at += len(piece)
        if piece in ("[", "]"):
            depth += 1 if piece == "[" else -1
        if without_space and not depth and piece in _SPACE:
            continue
        shorthand = len(piece) == 2 and piece[1] in "wWsSdD" and not depth
        pieces.append(f"[{piece}]" if shorthand else piece)
    return "".join(pieces)
