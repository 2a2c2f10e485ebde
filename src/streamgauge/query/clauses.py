"""The stream clauses that dialects share: a cursor over tokens, R2S operators, and windows in brackets.

A dialect reads its clauses and blanks them with spaces, and the rest is parsed as plain SPARQL, so positions in errors
are those of the original text. Windows are ``[RANGE 10s STEP 5s]``, ``[RANGE TRIPLES 100]``, ``[NOW]``, ``[ALL]``;
``Forms`` says which of them a dialect has.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Final, NoReturn

from streamgauge.model.algebra import QueryForm
from streamgauge.model.query import ContinuousQuery, StreamWindow, Window
from streamgauge.model.semantics import CQL, R2S
from streamgauge.query.parser import read_sparql, stamp_calls
from streamgauge.query.printer import sparql
from streamgauge.query.prologue import DEFAULT_BASE, Prologue, read_prologue
from streamgauge.query.text import QueryError, Token, blank, tokens

UNITS: Final = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_DURATION: Final = re.compile(r"(?>[0-9]+\s+(?:ms|s|m|h|d)(?!\w)|[^\s,]+)")
"""A word, or a number with its unit."""
_WINDOW: Final = re.compile(
    r"""[\s,]* (?i:
      (?P<now>NOW) |
      (?: (?P<all>ALL)
        | (?P<range>RANGE[\s,]+)? (?:TRIPLES|ROWS|TUPLES|ELEMENTS) [\s,]+ (?P<count>WORD)
        | RANGE (?P<sizes>[\s,]+ (?!(?:TRIPLES|ROWS|TUPLES|ELEMENTS)\b) WORD
            (?:[\s,]+ (?!(?:STEP|SLIDE|TUMBLING|RANGE)(?![^\s,])) WORD)*) )
      (?: [\s,]+ (?:(?P<word>STEP|SLIDE) [\s,]+ (?P<slide>WORD) | (?P<tumbling>TUMBLING)) )?
    ) [\s,]*""".replace("WORD", f"(?-i:{_DURATION.pattern})"),
    re.VERBOSE,
)
_SHORT: Final = re.compile(r"([0-9]+)\s*(ms|s|m|h|d)")
_XSD: Final = re.compile(r"P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)(?:\.(\d{1,3})0*)?S)?)?", re.ASCII)
_LARGEST: Final = 10**15


@dataclass(frozen=True, slots=True)
class WindowWord:
    """A part of the window inside the brackets, and its position in the text."""

    text: str
    start: int

    def apart(self) -> Iterator["WindowWord"]:
        """The single durations of several, as in ``1h 30m``."""
        for match in _DURATION.finditer(self.text):
            yield WindowWord(match.group(), self.start + match.start())


@dataclass(frozen=True, slots=True)
class Forms:
    """The forms of windows in a dialect.

    ``slide`` is its keyword for the slide; ``sliding``: without a slide, windows slide by 1 (ms or triple) instead of
    tumbling; ``kinds`` are among RANGE, TUMBLING, RANGE TRIPLES, TRIPLES, STEP (after TRIPLES), NOW, ALL and ALL STEP;
    ``duration`` prints ms.
    """

    dialect: str
    slide: str
    sliding: bool
    kinds: frozenset[str]
    duration: Callable[[int], str]
    example: str

    def read(self, text: str, start: int, end: int) -> Window:
        """The window in [start, end) of the text; QueryError for a form that the dialect lacks."""
        shown = f"[{text[start:end].strip()}]"
        match = _WINDOW.fullmatch(text, start, end)
        # The expression accepts the forms of all dialects, so that a form of another one is refused by its name below.
        if match is None or (match["tumbling"] and not match["sizes"]):
            raise QueryError(f"{shown} is not a window of {self.dialect}; write {self.example}", text, start)
        words = {name: WindowWord(part, match.start(name)) for name, part in match.groupdict().items() if part}
        kind = "RANGE TRIPLES" if match["range"] else "TRIPLES"
        forms = {"now": "NOW", "all": "ALL", "count": kind, "tumbling": "TUMBLING"}
        needed = [form for name, form in forms.items() if name in words]
        if "all" in words and "slide" in words:
            needed.append("ALL STEP")
        for form in needed:
            if form not in self.kinds:
                raise QueryError(f"{shown}: {self.dialect} has no {form} window: write {self.example}", text, start)
        return self._window(text, words, kind)

    def _window(self, text: str, words: Mapping[str, WindowWord], kind: str) -> Window:
        """The window of these parts; ``kind`` is the clause of a count-based one."""
        clause = words["word"].text.upper() if "word" in words else ""
        # CQL's [NOW]: the elements of the instant itself.
        if "now" in words:
            return Window(1, 1)
        if "all" in words:
            every = whole_ms(text, words["slide"], clause) if clause else 1
            return Window(every, every, "landmark")
        if "count" in words:
            if clause and "STEP" not in self.kinds:
                what = f"{self.dialect} has no {clause} after {kind}: leave it out"
                raise QueryError(what, text, words["word"].start)
            size = _count(text, words["count"], "TRIPLES")
            own = 1 if self.sliding else size
            return Window(size, _count(text, words["slide"], clause) if clause else own, "count")
        size = sum(whole_ms(text, word, "RANGE") for word in words["sizes"].apart())
        own = 1 if self.sliding and "tumbling" not in words else size
        return Window(size, whole_ms(text, words["slide"], clause) if clause else own)

    def write(self, window: Window) -> str:
        """The window in brackets; ValueError if the dialect lacks it."""
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
            raise ValueError(f"{self.dialect} has [ALL] without a {self.slide}: it cannot express {slide} ms")
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
            raise ValueError(f"{self.dialect}'s [{clause} n] {how}: it cannot express {self.slide} {window.slide}")
        return f"{clause} {window.size}"


def whole_ms(text: str, word: WindowWord, clause: str) -> int:
    """The milliseconds of a duration in the text, at least 1; QueryError otherwise."""
    value = duration(word.text)
    if value is None and word.text.isdigit():
        what = f"{clause} {word.text} has no unit: write {word.text}s for seconds, {word.text}ms for milliseconds"
        raise QueryError(what, text, word.start)
    if value is None:
        what = f"{clause} {word.text} is not a duration in whole ms; write 5s, 500ms, 1m, 1h, 1d or PT5S"
        raise QueryError(what, text, word.start)
    if value < 1:
        raise QueryError(f"{clause} is {word.text}: it must be at least 1ms", text, word.start)
    return bounded(text, word, clause, value)


def bounded(text: str, word: WindowWord, clause: str, value: int) -> int:
    """The value; QueryError above 10^15 (some 30,000 years in ms)."""
    if value > _LARGEST:
        raise QueryError(f"{clause} is {word.text}: it must be at most 10^15", text, word.start)
    return value


def _count(text: str, word: WindowWord, clause: str) -> int:
    if not re.fullmatch(r"[0-9]+", word.text):
        raise QueryError(f"{clause} {word.text} is not a number of triples; write a whole number", text, word.start)
    # Cut, as Python refuses to convert numbers of thousands of digits; ``bounded`` then refuses what is left.
    if int(word.text[:20]) < 1:
        raise QueryError(f"{clause} is {word.text}: it must be at least 1", text, word.start)
    return bounded(text, word, clause, int(word.text[:20]))


def duration(text: str) -> int | None:
    """Milliseconds of ``5s``, ``500ms``, ``1m``, ``1h``, ``1d`` or an xsd:dayTimeDuration, else ``None``."""
    # Python refuses to convert numbers of thousands of digits.
    if len(text) > 100:
        return None
    short = _SHORT.fullmatch(text)
    if short:
        return int(short.group(1)) * UNITS[short.group(2)]
    long = _XSD.fullmatch(text)
    if long is None or not any(group is not None for group in long.groups()[:4]):
        return None
    days, hours, minutes, seconds = (int(group or 0) for group in long.groups()[:4])
    # Worked example: PT1.5S has the fraction "5", padded to "500" ms. The expression takes three digits of it, and
    # then zeros only, so nothing finer than a ms is cut off silently.
    return (((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1000 + int((long.group(5) or "").ljust(3, "0"))


def short_duration(ms: int, largest: str = "d") -> str:
    """The duration in its largest whole unit, at most ``largest``, like ``5s``."""
    able = (unit for unit, factor in UNITS.items() if ms % factor == 0 and factor <= UNITS[largest])
    unit = max(able, key=lambda unit: UNITS[unit])
    return f"{ms // UNITS[unit]}{unit}"


def xsd_duration(ms: int) -> str:
    """The duration as xsd:dayTimeDuration in seconds, like ``PT5S``."""
    seconds, rest = divmod(ms, 1000)
    return f"PT{seconds}S" if not rest else f"PT{seconds}.{rest:03d}".rstrip("0") + "S"


_FORMS: Final = ("SELECT", "CONSTRUCT", "ASK")
_STREAMS: Final = {f"{operator.value.upper()}": operator for operator in CQL}


@dataclass(slots=True)
class Clauses:
    """A text whose stream clauses are read one by one and blanked in ``plain``, in which positions do not change."""

    text: str
    plain: str
    tokens: tuple[Token, ...]
    prologue: Prologue
    at: int = 0
    windows: list[tuple[StreamWindow, Token]] = field(default_factory=list)
    r2s: R2S | None = None
    name: str | None = None
    background: list[str] = field(default_factory=list)
    named_static: set[str] = field(default_factory=set)
    unread: dict[str, Token] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    @property
    def token(self) -> Token:
        """The token under the cursor; an empty one at the end."""
        return self.tokens[self.at] if self.at < len(self.tokens) else Token("sign", "", len(self.text))

    def says(self, *words: str) -> bool:
        """Whether these keywords follow, in this order."""
        following = self.tokens[self.at : self.at + len(words)]
        return len(following) == len(words) and all(
            token.says(word) for token, word in zip(following, words, strict=True)
        )

    def begins(self, token: Token) -> bool:
        """Whether a token is the query form's keyword: the first SELECT, CONSTRUCT or ASK, not that of a subquery."""
        if not token.says(*_FORMS):
            return False
        forms = (form for form in islice(self.tokens, self.prologue.end, None) if form.says(*_FORMS))
        return token is next(forms, None)

    def reach(self, *words: str) -> bool:
        """Steps to the next FROM, SELECT, CONSTRUCT, ASK or one of these keywords; false at the end of the text."""
        openers = {"FROM", *_FORMS, *words}
        following = enumerate(islice(self.tokens, self.at, None), self.at)
        places = (at for at, token in following if token.kind == "word" and token.text.upper() in openers)
        self.at = next(places, len(self.tokens))
        return self.at < len(self.tokens)

    def take(self, *words: str) -> bool:
        """Steps over these keywords if they follow."""
        if not self.says(*words):
            return False
        self.at += len(words)
        return True

    def refuse(self, what: str, token: Token | None = None) -> NoReturn:
        """Raises QueryError at a token, or at the cursor."""
        raise QueryError(what, self.text, (token or self.token).start)

    def iri(self, clause: str) -> str:
        """Steps over an IRI or prefixed name: its absolute IRI."""
        if self.token.kind not in ("iri", "name"):
            self.refuse(f"{clause} needs an IRI here, like <http://example.org/stream> or a prefixed name")
        self.at += 1
        return self.prologue.iri(self.tokens[self.at - 1])

    def blank(self, first: Token, replacement: str = "") -> None:
        """Blanks the text from a token up to the cursor."""
        self.plain = blank(self.plain, first.start, self.tokens[self.at - 1].end, replacement)

    def static_graph(self, may_be_named: bool = False) -> bool:
        """Steps over ``FROM <g>`` before WHERE, if it follows: the graph of static data.

        ``may_be_named`` also accepts ``FROM NAMED <g>``, which ``GRAPH <g>`` reads (``takes_static``).
        """
        first, named = self.token, may_be_named and self.says("FROM", "NAMED")
        following = self.tokens[self.at + 1 + named : self.at + 2 + named]
        if not first.says("FROM") or not following or following[0].kind not in ("iri", "name"):
            return False
        passed = [token.text for token in self.tokens[: self.at]]
        # An open brace before it: this FROM is inside the pattern, where SPARQL has no such clause.
        if passed.count("{") != passed.count("}"):
            self.refuse("FROM must come before WHERE", first)
        self.at += 1 + named
        self.background.append(self.iri("FROM"))
        if named:
            self.named_static.add(self.background[-1])
            self.unread[self.background[-1]] = first
        self.blank(first)
        return True

    def takes_static(self, first: Token, name: str) -> bool:
        """Whether ``GRAPH <name>``, up to the cursor, reads static data of FROM NAMED; if so it is blanked."""
        if name not in self.named_static:
            return False
        if len(self.background) > 1:
            what = "static data is one graph: name a single one by FROM NAMED <g>, or write the patterns outside GRAPH"
            self.refuse(what, first)
        self.unread.pop(name, None)
        self.blank(first)
        return True

    def stream_operator(self) -> R2S | None:
        """Steps over RSTREAM, ISTREAM or DSTREAM if it follows."""
        if not self.token.says(*_STREAMS):
            return None
        self.at += 1
        return _STREAMS[self.tokens[self.at - 1].text.upper()]

    def window(self, read: Callable[[str, int, int], Window]) -> Window:
        """Steps over a window in brackets, which ``read(text, start, end)`` parses."""
        opening = self.token
        if opening.text != "[":
            self.refuse("a window like [RANGE 10s STEP 5s] is missing here")
        # To the bracket, whatever is between: ``read`` quotes the whole window in its error.
        while self.token.text not in ("]", ""):
            self.at += 1
        closing = self.token
        if closing.text != "]":
            self.refuse("the window is not closed: add ]", opening)
        self.at += 1
        return read(self.text, opening.end, closing.start)

    def refuse_timestamp(self, dialect: str) -> None:
        """Raises QueryError at the first ``timestamp(``, for a dialect without it."""
        for token in stamp_calls(self.tokens, self.prologue):
            self.refuse(f"{dialect} has no timestamp(): write the query in rspql or csparql", token)

    def declare(self, window: StreamWindow, token: Token) -> None:
        """Adds a window of the query, declared at a token; QueryError if it is declared twice."""
        if any(window == other for other, _ in self.windows):
            self.refuse("this window is declared twice: leave one out", token)
        self.windows.append((window, token))


def names_its_windows(words: Sequence[Token]) -> bool:
    """Whether a window in brackets is followed by a name, as in RSP-QL's ``FROM STREAM <s> [RANGE 10s] AS <w>``."""
    triples = zip(words, words[1:], words[2:], strict=False)
    return any(one.text == "]" and two.says("AS") and three.kind in ("iri", "name") for one, two, three in triples)


def open_clauses(text: str) -> Clauses:
    """The clauses of a text after its prologue, which may be before REGISTER, after it, or both."""
    tokens_ = tokens(text)
    prologue = read_prologue(text, tokens_, default=DEFAULT_BASE)
    start = prologue.end
    if start < len(tokens_) and tokens_[start].says("REGISTER"):
        # C-SPARQL declares prefixes between REGISTER ... AS and SELECT.
        after = next((index for index, token in enumerate(tokens_) if token.says("AS")), start)
        prologue = read_prologue(text, tokens_, after + 1, prologue)
    return Clauses(text, text, tokens_, prologue, at=start)


def registered_name(clauses: Clauses) -> str | None:
    """Steps over the name in REGISTER: an identifier, an IRI (kept relative without BASE) or a prefixed name."""
    token = clauses.token
    if token.kind == "iri":
        clauses.at += 1
        try:
            # A name is not data: the default base of this program must not become a part of it.
            return replace(clauses.prologue, default=None).resolve(token.text[1:-1]) or token.text[1:-1]
        except ValueError as error:
            raise QueryError(str(error), clauses.text, token.start) from None
    if token.kind == "name":
        return clauses.iri("REGISTER")
    # REGISTER may go without a name in RSP-QL, so a keyword that follows it is not one.
    if token.kind == "word" and not token.says("AS", "COMPUTED"):
        clauses.at += 1
        return token.text
    return None


def end_registration(clauses: Clauses, first: Token) -> None:
    """Steps over the AS that ends REGISTER, and blanks the whole registration."""
    if not clauses.take("AS"):
        clauses.refuse("REGISTER ... AS: the AS is missing here")
    clauses.blank(first)


def form_of(clauses: Clauses) -> QueryForm:
    """The algebra of a text whose stream clauses are read; errors show the original text."""
    try:
        query = read_sparql(clauses.plain, DEFAULT_BASE).answerable()
    # ``plain`` has the same positions as the text, with spaces instead of the clauses.
    except QueryError as error:
        raise error.within(clauses.text) from None
    clauses.notes = list(query.notes)
    return query.form


def compose(clauses: Clauses, form: QueryForm | None = None) -> ContinuousQuery:
    """The continuous query of a text whose stream clauses are read."""
    for name, token in clauses.unread.items():
        what = f"FROM NAMED <{name}>: no pattern uses that graph; add GRAPH <{name}> {{ .. }}, or leave NAMED out"
        clauses.refuse(what, token)
    form = form_of(clauses) if form is None else form
    windows = tuple(window for window, _ in clauses.windows)
    background = tuple(dict.fromkeys(clauses.background))
    return ContinuousQuery(
        form,
        windows,
        clauses.r2s,
        (),
        clauses.name,
        background,
        sparql(form),
        (*_notes(clauses.prologue, clauses.plain), *clauses.notes),
    )


def _notes(prologue: Prologue, plain: str) -> tuple[str, ...]:
    """Notes on relative IRIs of a text without BASE, in the stream clauses or in the rest (``plain``)."""
    if prologue.base is not None:
        return ()
    left = tokens(plain)
    # Resolving the IRIs of the rest adds them to ``prologue.relative``, where those of the clauses are already.
    for token in left[read_prologue(plain, left, default=DEFAULT_BASE).end :]:
        if token.kind == "iri":
            prologue.iri(token)
    shown = ", ".join(f"<{reference}>" for reference in prologue.relative)
    return (f"no BASE: {shown} taken as relative to <{DEFAULT_BASE}>",) if shown else ()


def dataset(query: ContinuousQuery, streams: str = "") -> str:
    """The dataset clauses of a query: FROM for its static graphs, then the dialect's stream clauses."""
    return "\n".join((*(f"FROM <{name}>" for name in query.background), *filter(None, (streams,))))
