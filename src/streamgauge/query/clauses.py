"""What the dialects' stream clauses are made of: a cursor over tokens, durations, windows, blanking, composing."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, NoReturn

from streamgauge.model.query import ContinuousQuery, StreamWindow, Window
from streamgauge.model.semantics import R2S
from streamgauge.query.errors import QueryError, refusal
from streamgauge.query.parser import parse_sparql
from streamgauge.query.printer import sparql
from streamgauge.query.prologue import Prologue, read_prologue
from streamgauge.query.tokens import Token, blank, tokens

_UNITS: Final = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_WORD: Final = re.compile(r"[^\s,]+")
_SHORT: Final = re.compile(r"(\d+)(ms|s|m|h|d)")
_XSD: Final = re.compile(r"P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)(?:\.(\d{1,3})0*)?S)?)?")
_STREAMS: Final = {f"{operator.value.upper()}": operator for operator in R2S}


@dataclass(slots=True)
class Clauses:
    """A text whose stream clauses are read one after the other and blanked; positions never move."""

    text: str
    plain: str
    found: tuple[Token, ...]
    prologue: Prologue
    at: int = 0
    windows: list[tuple[StreamWindow, Token]] = field(default_factory=list)
    r2s: R2S | None = None
    name: str | None = None

    @property
    def token(self) -> Token:
        """The token under the cursor; the last one, empty, at the end."""
        return self.found[self.at] if self.at < len(self.found) else Token("sign", "", len(self.text))

    def says(self, *words: str) -> bool:
        """Whether these keywords follow, in this order."""
        following = self.found[self.at : self.at + len(words)]
        return len(following) == len(words) and all(
            token.says(word) for token, word in zip(following, words, strict=True)
        )

    def take(self, *words: str) -> bool:
        """Steps over these keywords if they follow."""
        if not self.says(*words):
            return False
        self.at += len(words)
        return True

    def refuse(self, what: str, token: Token | None = None) -> NoReturn:
        """Raises QueryError at a token, or at the cursor."""
        raise refusal(what, self.text, (token or self.token).start)

    def iri(self, clause: str) -> str:
        """Steps over an IRI or prefixed name: its absolute IRI."""
        if self.token.kind not in ("iri", "name"):
            self.refuse(f"{clause} needs an IRI here, like <http://example.org/stream> or a prefixed name")
        self.at += 1
        return self.prologue.iri(self.found[self.at - 1])

    def blank(self, first: Token, replacement: str = "") -> None:
        """Blanks the text from a token up to the cursor."""
        self.plain = blank(self.plain, first.start, self.found[self.at - 1].end, replacement)

    def stream_operator(self) -> R2S | None:
        """Steps over RSTREAM, ISTREAM or DSTREAM if it follows."""
        if not self.token.says(*_STREAMS):
            return None
        self.at += 1
        return _STREAMS[self.found[self.at - 1].text.upper()]

    def window(self) -> Window:
        """Steps over ``[RANGE size STEP slide]``; without a slide the window tumbles: slide = size."""
        opening = self.token
        if opening.text != "[":
            self.refuse("a window like [RANGE 10s STEP 5s] is missing here")
        while self.token.text not in ("]", ""):
            self.at += 1
        closing = self.token
        if closing.text != "]":
            self.refuse("the window is not closed: add ]", opening)
        self.at += 1
        return _window(self.text, opening.end, closing.start)

    def declare(self, window: StreamWindow, token: Token) -> None:
        """Notes a window of the query, declared at a token."""
        if any(window == other for other, _ in self.windows):
            self.refuse("this window is declared twice: leave one out", token)
        self.windows.append((window, token))


def open_clauses(text: str) -> Clauses:
    """The clauses of a text, its prologue read: before REGISTER, after it, or both."""
    found = tokens(text)
    prologue = read_prologue(text, found)
    if prologue.end < len(found) and found[prologue.end].says("REGISTER"):
        after = next((index for index, token in enumerate(found) if token.says("AS")), prologue.end)
        later = read_prologue(text, found, after + 1, prologue)
        return Clauses(text, text, found, later, at=prologue.end)
    return Clauses(text, text, found, prologue, at=prologue.end)


def registered_name(clauses: Clauses) -> str | None:
    """Steps over the name in REGISTER: an identifier, an IRI (a relative one stays as it is) or a prefixed name."""
    token = clauses.token
    if token.kind == "iri":
        clauses.at += 1
        return clauses.prologue.resolve(token.text[1:-1]) or token.text[1:-1]
    if token.kind == "name":
        return clauses.iri("REGISTER")
    if token.kind == "word" and not token.says("AS", "COMPUTED"):
        clauses.at += 1
        return token.text
    return None


def end_registration(clauses: Clauses, first: Token) -> None:
    """Steps over the AS that ends REGISTER, and blanks all of it."""
    if not clauses.take("AS"):
        clauses.refuse("REGISTER ... AS: the AS is missing here")
    clauses.blank(first)


def compose(clauses: Clauses) -> ContinuousQuery:
    """The continuous query of a text whose stream clauses are all read."""
    try:
        form = parse_sparql(clauses.plain)
    except QueryError as error:
        raise error.within(clauses.text) from None
    windows = tuple(window for window, _ in clauses.windows)
    return ContinuousQuery(form, windows, clauses.r2s, name=clauses.name, sparql=sparql(form))


def _window(text: str, start: int, end: int) -> Window:
    words = [(found.group().upper(), found.group(), found.start()) for found in _WORD.finditer(text, start, end)]
    match [word for word, _, _ in words]:
        case ["RANGE", "TRIPLES" | "ROWS" | "ELEMENTS", *_] | ["TRIPLES" | "ROWS" | "ELEMENTS", *_]:
            raise _counted(text, start, end)
        case ["RANGE", _]:
            size = _positive(text, words[1], "RANGE")
            return Window(size, size)
        case ["RANGE", _, "TUMBLING"]:
            size = _positive(text, words[1], "RANGE")
            return Window(size, size)
        case ["RANGE", _, ("STEP" | "SLIDE") as word, _]:
            return Window(_positive(text, words[1], "RANGE"), _positive(text, words[3], word))
        case _:
            raise refusal(f"[{text[start:end]}] is no window; write [RANGE 10s STEP 5s]", text, start)


def _counted(text: str, start: int, end: int) -> QueryError:
    what = f"[{text[start:end]}] counts triples, which is not supported; give a time, like [RANGE 5s STEP 1s]"
    return refusal(what, text, start)


def _positive(text: str, word: tuple[str, str, int], clause: str) -> int:
    _, written, start = word
    value = duration(written)
    if value is None:
        what = f"{clause} {written} is no duration in whole ms; write 5s, 500ms, 1m, 1h, 1d or PT5S"
        raise refusal(what, text, start)
    if value < 1:
        raise refusal(f"{clause} is {written}: it must be at least 1ms", text, start)
    return value


def duration(text: str) -> int | None:
    """Ms of ``5s``, ``500ms``, ``1m``, ``1h``, ``1d`` or an xsd:dayTimeDuration; ``None`` for anything else."""
    short = _SHORT.fullmatch(text)
    if short:
        return int(short.group(1)) * _UNITS[short.group(2)]
    long = _XSD.fullmatch(text)
    if long is None or not any(group is not None for group in long.groups()[:4]):
        return None
    days, hours, minutes, seconds = (int(group or 0) for group in long.groups()[:4])
    return (((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1000 + int((long.group(5) or "").ljust(3, "0"))


def short_duration(ms: int) -> str:
    """The duration in its largest whole unit, like ``5s``."""
    unit = max((unit for unit, factor in _UNITS.items() if ms % factor == 0), key=lambda unit: _UNITS[unit])
    return f"{ms // _UNITS[unit]}{unit}"


def xsd_duration(ms: int) -> str:
    """The duration as xsd:dayTimeDuration in seconds, like ``PT5S``."""
    seconds, rest = divmod(ms, 1000)
    return f"PT{seconds}S" if not rest else f"PT{seconds}.{rest:03d}".rstrip("0") + "S"


def only_named(windows: Sequence[StreamWindow]) -> bool:
    """Whether every window has a name."""
    return all(window.name is not None for window in windows)
