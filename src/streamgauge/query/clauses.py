"""The parts of the dialects' stream clauses: a cursor over tokens, operators, windows, blanking, composing."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import islice, pairwise
from typing import Final, NoReturn

from streamgauge.model.algebra import QueryForm
from streamgauge.model.query import ContinuousQuery, StreamWindow, Window
from streamgauge.model.semantics import CQL, R2S
from streamgauge.query.errors import QueryError, refusal
from streamgauge.query.parser import parse_sparql
from streamgauge.query.printer import sparql
from streamgauge.query.prologue import DEFAULT_BASE, Prologue, read_prologue
from streamgauge.query.stamps import FUNCTION, TIMESTAMP
from streamgauge.query.tokens import Token, blank, tokens

_STREAMS: Final = {f"{operator.value.upper()}": operator for operator in CQL}


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
    background: list[str] = field(default_factory=list)

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

    def begins(self, token: Token) -> bool:
        """Whether the query form begins here: the first SELECT, CONSTRUCT or ASK, not a subquery's."""
        return token.says("SELECT", "CONSTRUCT", "ASK") and token is self._form()

    def _form(self) -> Token | None:
        rest = islice(self.found, self.prologue.end, None)
        return next((one for one in rest if one.says("SELECT", "CONSTRUCT", "ASK")), None)

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

    def static_graph(self) -> bool:
        """Steps over ``FROM <g>`` before WHERE, a static graph that joins the default graph, if it follows."""
        first, following = self.token, self.found[self.at + 1 : self.at + 2]
        if not first.says("FROM") or not following or following[0].kind not in ("iri", "name"):
            return False
        passed = [token.text for token in self.found[: self.at]]
        if passed.count("{") != passed.count("}"):
            self.refuse("FROM stands before WHERE", first)
        self.at += 1
        self.background.append(self.iri("FROM"))
        self.blank(first)
        return True

    def stream_operator(self) -> R2S | None:
        """Steps over RSTREAM, ISTREAM or DSTREAM if it follows."""
        if not self.token.says(*_STREAMS):
            return None
        self.at += 1
        return _STREAMS[self.found[self.at - 1].text.upper()]

    def window(self, read: Callable[[str, int, int], Window]) -> Window:
        """Steps over a window in brackets, what is between them read by ``read(text, start, end)``."""
        opening = self.token
        if opening.text != "[":
            self.refuse("a window like [RANGE 10s STEP 5s] is missing here")
        while self.token.text not in ("]", ""):
            self.at += 1
        closing = self.token
        if closing.text != "]":
            self.refuse("the window is not closed: add ]", opening)
        self.at += 1
        return read(self.text, opening.end, closing.start)

    def refuse_timestamp(self, dialect: str) -> None:
        """Raises QueryError at the first ``timestamp(``, for a dialect that has none."""
        for token, following in pairwise(self.found[self.prologue.end :]):
            if following.text == "(" and self._is_timestamp(token):
                self.refuse(f"{dialect} has no timestamp(): write the query in rspql or csparql", token)

    def _is_timestamp(self, token: Token) -> bool:
        if token.kind in ("iri", "name"):
            return f"<{self.prologue.iri(token)}>" == FUNCTION
        return token.says(TIMESTAMP)

    def declare(self, window: StreamWindow, token: Token) -> None:
        """Notes a window of the query, declared at a token."""
        if any(window == other for other, _ in self.windows):
            self.refuse("this window is declared twice: leave one out", token)
        self.windows.append((window, token))


def open_clauses(text: str) -> Clauses:
    """The clauses of a text, its prologue read: before REGISTER, after it, or both."""
    found = tokens(text)
    prologue = read_prologue(text, found, default=DEFAULT_BASE)
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
        try:
            return replace(clauses.prologue, default=None).resolve(token.text[1:-1]) or token.text[1:-1]
        except ValueError as error:
            raise refusal(str(error), clauses.text, token.start) from None
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


def form_of(clauses: Clauses) -> QueryForm:
    """The algebra of a text whose stream clauses are all read; errors show the text as it was written."""
    try:
        return parse_sparql(clauses.plain, DEFAULT_BASE)
    except QueryError as error:
        raise error.within(clauses.text) from None


def compose(clauses: Clauses, form: QueryForm | None = None) -> ContinuousQuery:
    """The continuous query of a text whose stream clauses are all read."""
    form = form_of(clauses) if form is None else form
    windows = tuple(window for window, _ in clauses.windows)
    background = tuple(dict.fromkeys(clauses.background))
    return ContinuousQuery(
        form, windows, clauses.r2s, (), clauses.name, background, sparql(form), _notes(clauses.prologue, clauses.plain)
    )


def _notes(prologue: Prologue, plain: str) -> tuple[str, ...]:
    """Which IRIs of the text were relative to no BASE of its own, in the stream clauses or in the rest (``plain``)."""
    if prologue.base is not None:
        return ()
    left = tokens(plain)
    for token in left[read_prologue(plain, left, default=DEFAULT_BASE).end :]:
        if token.kind == "iri":
            prologue.iri(token)
    shown = ", ".join(f"<{reference}>" for reference in prologue.relative)
    return (f"no BASE: {shown} taken as relative to <{DEFAULT_BASE}>",) if shown else ()


def dataset(query: ContinuousQuery, streams: str = "") -> str:
    """The dataset clauses of a query: its static graphs, then its streams in the dialect's own words."""
    return "\n".join((*(f"FROM <{name}>" for name in query.background), *filter(None, (streams,))))
