"""Regular expressions as XPath has them (F&O 3.1, 5.6): syntax checked and translated by elementpath.

RE2 matches: it needs time in proportion to the text, whatever the pattern. Simple patterns on short texts go to
Python's own module, which is faster there. Patterns with back-references, which RE2 has not, go to the module ``regex``
for 0.05 s at most; one that took longer once is not tried again. One detail is RE2's: with the flag m, ``^`` matches
after a newline at the very end too.
"""

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, Final

import re2
import regex

_END: Final = r"$(?!\n\Z)"
_LINE: Final = r"(?<!\n\Z)^"
_DOT: Final = r"[^\r\n]"
_CALM: Final = re.compile(
    r"[^()\[\]{}|*+?\\.$]*(?:\([^()\[\]{}*+?\\.$]*\)|\[[^\[\]\\^-]*\]|\.)?[*+?]?[^()\[\]{}|*+?\\.$]*\$?"
)
"""Patterns that mean the same in XPath and Python, with one group, class or dot and one quantifier at most."""
_SHORT: Final = 1000
_SECONDS: Final = 0.05
_REPLACEMENT: Final = re.compile(r"\\[\\$]|\$[0-9]+|[^\\$]+")
_SPACE: Final = frozenset(" \t\n\r")


class PatternError(ValueError):
    """A pattern, its flags or a replacement that XPath does not allow, or that took too long; SPARQL's error."""


class Pattern:
    """A compiled regular expression; use ``pattern`` to make one."""

    def __init__(self, text: str, flags: str) -> None:
        if not set(flags) <= set("imsxq"):
            raise PatternError(f"unknown flag in {flags!r}: i, m, s, x and q are allowed")
        self._quick = re.compile(text.replace("$", r"\Z")) if not flags and _CALM.fullmatch(text) else None
        self._general: Any = None
        self._source = text, flags
        if self._quick is None:
            self._general = _compiled(*self._source)

    def _matcher(self, text: str) -> Any:
        if self._quick is not None and len(text) <= _SHORT:
            return self._quick
        if self._general is None:
            self._general = _compiled(*self._source)
        return self._general

    def found(self, text: str) -> bool:
        """fn:matches: whether some part of the text matches."""
        try:
            return self._matcher(text).search(text) is not None
        except TimeoutError as error:
            raise PatternError("the pattern takes too long on this text") from error

    def replaced(self, text: str, replacement: str) -> str:
        """fn:replace: every match replaced; PatternError when the pattern matches a text of no length."""
        if self.found(""):
            raise PatternError("the pattern matches a text of no length")
        matcher = self._matcher(text)
        parts: list[str | int] = [replacement] if "q" in self._source[1] else _parts(replacement, matcher.groups)
        pieces, at = [], 0
        try:
            for match in matcher.finditer(text):
                pieces += [text[at : match.start()], *_filled(parts, match)]
                at = match.end()
        except TimeoutError as error:
            raise PatternError("the pattern takes too long on this text") from error
        return "".join((*pieces, text[at:]))


@lru_cache(maxsize=1024)
def pattern(text: str, flags: str = "") -> Pattern:
    """A pattern, compiled once; PatternError where XPath does not allow it."""
    return Pattern(text, flags)


def _filled(parts: list[str | int], match: Any) -> Iterator[str]:
    for part in parts:
        yield part if isinstance(part, str) else match.group(part) or ""


def _parts(replacement: str, groups: int) -> list[str | int]:
    r"""Texts and numbers of groups of a replacement (F&O 3.1, 5.6.4).

    ``a$1\$`` is "a", group 1, "$"; ``$12`` is group 1 and "2" where there are fewer than 12 groups.
    """
    parts: list[str | int] = []
    at = 0
    while at < len(replacement):
        found = _REPLACEMENT.match(replacement, at)
        if found is None:
            raise PatternError(f"a backslash or a dollar sign stands alone in the replacement {replacement!r}")
        text, at = found.group(), found.end()
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
    options.log_errors = False
    try:
        near = source.replace(_END, r"\z").replace(_LINE, "^")
        return re2.compile(f"(?{inline}){near}" if inline else near, options)
    except re2.error:
        pass
    try:
        return _Limited(regex.compile(f"(?{inline}){source}" if inline else source))
    except (regex.error, OverflowError) as error:
        raise PatternError(f"not a regular expression of XPath: {text!r}: {error}") from error


class _Limited:
    """A pattern of the module ``regex``; TimeoutError when it took longer than 0.05 s once."""

    def __init__(self, compiled: Any) -> None:
        self._compiled = compiled
        self.groups: int = compiled.groups
        self.slow = False

    def search(self, text: str) -> Any:
        return self._timed(self._compiled.search, text)

    def finditer(self, text: str) -> Any:
        return iter(self._timed(lambda *given, **limits: list(self._compiled.finditer(*given, **limits)), text))

    def _timed(self, match: Callable[..., Any], text: str) -> Any:
        if self.slow:
            raise TimeoutError("the pattern took too long on another text")
        try:
            return match(text, timeout=_SECONDS)
        except TimeoutError:
            self.slow = True
            raise


def _translated(text: str, flags: str) -> str:
    from elementpath.regex import RegexError, translate_pattern  # late: 0.2 s, for few queries

    bits = (re.IGNORECASE if "i" in flags else 0) | (re.MULTILINE if "m" in flags else 0)
    bits |= re.DOTALL if "s" in flags else 0
    try:
        return translate_pattern(text, flags=bits, xsd_version="1.1").replace(_DOT, r"[^\n]")
    except (RegexError, ValueError, IndexError) as error:
        raise PatternError(f"not a regular expression of XPath: {text!r}: {error}") from error


def _prepared(text: str, without_space: bool) -> str:
    r"""The pattern with ``\w``, ``\s`` and ``\d`` in brackets (they are XML Schema's then, not Python's).

    With the flag x, without the space outside brackets: ``a b[ ]`` is ``ab[ ]``.
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
