"""Windows in brackets, read and written: ``[RANGE 10s STEP 5s]``, ``[RANGE TRIPLES 100]``, ``[NOW]``, ``[ALL]``."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from streamgauge.model.query import Window
from streamgauge.query.errors import refusal

UNITS: Final = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_WORD: Final = re.compile(r"[0-9]+\s+(?:ms|s|m|h|d)(?!\w)|[^\s,]+")
_SHORT: Final = re.compile(r"([0-9]+)\s*(ms|s|m|h|d)")
_XSD: Final = re.compile(r"P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)(?:\.(\d{1,3})0*)?S)?)?", re.ASCII)
_LARGEST: Final = 10**15
_SLIDES: Final = ("STEP", "SLIDE")
_COUNTED: Final = ("TRIPLES", "ROWS", "ELEMENTS")


@dataclass(frozen=True, slots=True)
class WindowWord:
    """A word between the brackets, or a number with its unit, and its position in the text."""

    text: str
    start: int

    def says(self, *words: str) -> bool:
        """Whether this is one of these keywords (upper case)."""
        return self.text.upper() in words


@dataclass(frozen=True, slots=True)
class Forms:
    """The windows that a dialect has.

    ``slide`` is the word it writes; ``sliding`` says whether a RANGE or TRIPLES alone slides by 1 (ms or triple) rather
    than tumbles; ``kinds`` are among RANGE, TUMBLING, RANGE TRIPLES, TRIPLES, STEP (behind TRIPLES), NOW, ALL and
    ALL STEP; ``duration`` writes ms.
    """

    dialect: str
    slide: str
    sliding: bool
    kinds: frozenset[str]
    duration: Callable[[int], str]
    example: str

    def read(self, text: str, start: int, end: int) -> Window:
        """The window written in [start, end) of the text; QueryError says what the dialect does not have."""
        words = tuple(WindowWord(match.group(), match.start()) for match in _WORD.finditer(text, start, end))
        inside = _Inside(self, text, start, end, words)
        if inside.says("NOW") and len(words) == 1:
            inside.need("NOW")
            return Window(1, 1)
        if inside.says("ALL"):
            return inside.landmark()
        if inside.says("RANGE") and inside.says(*_COUNTED, at=1):
            return inside.counted("RANGE TRIPLES", words[2:])
        if inside.says(*_COUNTED):
            return inside.counted("TRIPLES", words[1:])
        if inside.says("RANGE"):
            return inside.ranged(words[1:])
        raise inside.wrong()

    def write(self, window: Window) -> str:
        """The window in brackets; ValueError when the dialect does not have it."""
        match window.kind:
            case "landmark":
                return f"[{self._landmark(window.slide)}]"
            case "count":
                return f"[{self._counted(window)}]"
            case _ if window == Window(1, 1) and "NOW" in self.kinds:
                return "[NOW]"
            case _:
                return f"[RANGE {self.duration(window.size)}{self._slide(window)}]"

    def _slide(self, window: Window) -> str:
        hidden = self.sliding and window.slide == 1
        return "" if hidden else f" {self.slide} {self.duration(window.slide)}"

    def _landmark(self, slide: int) -> str:
        if "ALL" not in self.kinds:
            raise ValueError(f"{self.dialect} has no landmark window ([ALL]): print the query as rspql")
        if slide == 1:
            return "ALL"
        if "ALL STEP" not in self.kinds:
            raise ValueError(f"{self.dialect} has [ALL] without a {self.slide}: it cannot say {slide} ms")
        return f"ALL {self.slide} {self.duration(slide)}"

    def _counted(self, window: Window) -> str:
        clause = next((kind for kind in ("RANGE TRIPLES", "TRIPLES") if kind in self.kinds), None)
        if clause is None:
            raise ValueError(f"{self.dialect} has no count-based windows ([TRIPLES n]): print the query as rspql")
        if "STEP" in self.kinds:
            return f"{clause} {window.size} {self.slide} {window.slide}"
        own = 1 if self.sliding else window.size
        if window.slide != own:
            how = "slides by 1" if self.sliding else "tumbles"
            raise ValueError(f"{self.dialect}'s [{clause} n] {how}: it cannot say {self.slide} {window.slide}")
        return f"{clause} {window.size}"


@dataclass(frozen=True, slots=True)
class _Inside:
    """The words between the brackets, while they are read."""

    forms: Forms
    text: str
    start: int
    end: int
    words: Sequence[WindowWord]

    def says(self, *words: str, at: int = 0) -> bool:
        return len(self.words) > at and self.words[at].says(*words)

    def need(self, kind: str) -> None:
        if kind not in self.forms.kinds:
            what = f"{self.forms.dialect} has no {kind} window: write {self.forms.example}"
            raise refusal(f"[{self._shown()}]: {what}", self.text, self.start)

    def wrong(self) -> ValueError:
        what = f"[{self._shown()}] is no window of {self.forms.dialect}; write {self.forms.example}"
        return refusal(what, self.text, self.start)

    def _shown(self) -> str:
        return self.text[self.start : self.end].strip()

    def landmark(self) -> Window:
        self.need("ALL")
        match self.words:
            case [_]:
                return Window(1, 1, "landmark")
            case [_, word, slide] if word.says(*_SLIDES):
                self.need("ALL STEP")
                every = whole_ms(self.text, slide, word.text.upper())
                return Window(every, every, "landmark")
            case _:
                raise self.wrong()

    def counted(self, clause: str, rest: Sequence[WindowWord]) -> Window:
        self.need(clause)
        match rest:
            case [size]:
                triples = _count(self.text, size, "TRIPLES")
                return Window(triples, 1 if self.forms.sliding else triples, "count")
            case [size, word, slide] if word.says(*_SLIDES):
                if "STEP" not in self.forms.kinds:
                    what = f"{self.forms.dialect} has no {word.text.upper()} behind {clause}: leave it out"
                    raise refusal(what, self.text, word.start)
                return Window(_count(self.text, size, "TRIPLES"), _count(self.text, slide, word.text.upper()), "count")
            case _:
                raise self.wrong()

    def ranged(self, rest: Sequence[WindowWord]) -> Window:
        match rest:
            case [*sizes, word, slide] if sizes and word.says(*_SLIDES):
                return Window(self.size(sizes), whole_ms(self.text, slide, word.text.upper()))
            case [*sizes, word] if sizes and word.says("TUMBLING"):
                self.need("TUMBLING")
                return Window(self.size(sizes), self.size(sizes))
            case [_, *_]:
                size = self.size(rest)
                return Window(size, 1 if self.forms.sliding else size)
            case _:
                raise self.wrong()

    def size(self, sizes: Sequence[WindowWord]) -> int:
        """The sum of several durations, as in ``RANGE 1h 30m``."""
        if any(word.says(*_SLIDES, "TUMBLING", "RANGE") for word in sizes[1:]):
            raise self.wrong()
        return sum(whole_ms(self.text, word, "RANGE") for word in sizes)


def whole_ms(text: str, word: WindowWord, clause: str) -> int:
    """The ms of a duration in the text, at least 1."""
    value = duration(word.text)
    if value is None:
        what = f"{clause} {word.text} is no duration in whole ms; write 5s, 500ms, 1m, 1h, 1d or PT5S"
        raise refusal(what, text, word.start)
    if value < 1:
        raise refusal(f"{clause} is {word.text}: it must be at least 1ms", text, word.start)
    return bounded(text, word, clause, value)


def bounded(text: str, word: WindowWord, clause: str, value: int) -> int:
    """The value, unless it is beyond 10^15 (some 30,000 years in ms)."""
    if value > _LARGEST:
        raise refusal(f"{clause} is {word.text}: it must be at most 10^15", text, word.start)
    return value


def _count(text: str, word: WindowWord, clause: str) -> int:
    if not re.fullmatch(r"[0-9]+", word.text):
        raise refusal(f"{clause} {word.text} is no number of triples; write a whole number", text, word.start)
    if int(word.text[:20]) < 1:
        raise refusal(f"{clause} is {word.text}: it must be at least 1", text, word.start)
    return bounded(text, word, clause, int(word.text[:20]))


def duration(text: str) -> int | None:
    """Ms of ``5s``, ``500ms``, ``1m``, ``1h``, ``1d`` or an xsd:dayTimeDuration; ``None`` for anything else."""
    if len(text) > 100:
        return None
    short = _SHORT.fullmatch(text)
    if short:
        return int(short.group(1)) * UNITS[short.group(2)]
    long = _XSD.fullmatch(text)
    if long is None or not any(group is not None for group in long.groups()[:4]):
        return None
    days, hours, minutes, seconds = (int(group or 0) for group in long.groups()[:4])
    return (((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1000 + int((long.group(5) or "").ljust(3, "0"))


def short_duration(ms: int, largest: str = "d") -> str:
    """The duration in its largest whole unit up to the one named, like ``5s``."""
    able = (unit for unit, factor in UNITS.items() if ms % factor == 0 and factor <= UNITS[largest])
    unit = max(able, key=lambda unit: UNITS[unit])
    return f"{ms // UNITS[unit]}{unit}"


def xsd_duration(ms: int) -> str:
    """The duration as xsd:dayTimeDuration in seconds, like ``PT5S``."""
    seconds, rest = divmod(ms, 1000)
    return f"PT{seconds}S" if not rest else f"PT{seconds}.{rest:03d}".rstrip("0") + "S"
