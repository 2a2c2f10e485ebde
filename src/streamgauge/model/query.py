"""Continuous queries: SPARQL over the facts that hold at an instant, and the windows that determine these facts."""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

from streamgauge.model.algebra import QueryForm
from streamgauge.model.semantics import R2S
from streamgauge.model.tabular import html_table
from streamgauge.model.terms import Triple, misplaced, triple_term

WindowKind: TypeAlias = Literal["time", "count", "landmark"]


@dataclass(frozen=True, slots=True)
class Window:
    """A window: ``size`` (omega) and ``slide`` (beta), in ms, or in triples if it is count-based.

    A landmark window contains everything since t0 and closes every slide; its size equals its slide.
    """

    size: int
    slide: int
    kind: WindowKind = "time"

    def __post_init__(self) -> None:
        """Refuse a window that never moves or never contains anything."""
        unit = "triples" if self.kind == "count" else "ms"
        if self.size < 1:
            raise ValueError(f"window size is {self.size} {unit}: it must be at least 1")
        if self.slide < 1:
            raise ValueError(f"window slide is {self.slide} {unit}: it must be at least 1")
        if self.kind == "landmark" and self.size != self.slide:
            raise ValueError(f"a landmark window has no size of its own: {self.size} must be its slide, {self.slide}")


@dataclass(frozen=True, slots=True)
class StreamWindow:
    """One stream seen through one window; ``name`` is the window's IRI, ``None`` for the default graph."""

    stream: str
    window: Window
    name: str | None = None

    def _repr_html_(self) -> str:
        """The stream and its window, for notebooks."""
        unit = "triples" if self.window.kind == "count" else "ms"
        facts = {
            "window": self.name,
            "stream": self.stream,
            "kind": self.window.kind,
            "size": f"{self.window.size:,} {unit}" if self.window.kind != "landmark" else None,
            "slide": f"{self.window.slide:,} {unit}",
        }
        return html_table(("window", ""), [(name, fact) for name, fact in facts.items() if fact])


@dataclass(frozen=True)
class ContinuousQuery:
    """A query that is registered once and answered for as long as its streams change.

    ``form`` is the SPARQL algebra and decides equality; ``sparql`` is the text in plain SPARQL 1.1, without stream
    clauses, for a SPARQL engine to evaluate over one window's content. ``static`` is background data, of the static
    graphs whose IRIs are in ``background``. ``notes`` state assumptions made when the text was parsed.
    ``window_clause``: all patterns are in the clause of its only window.
    """

    form: QueryForm
    windows: tuple[StreamWindow, ...]
    r2s: R2S | None = None
    static: Collection[Triple] = ()
    name: str | None = None
    background: tuple[str, ...] = ()
    sparql: str = field(default="", compare=False)
    notes: tuple[str, ...] = field(default=(), compare=False)
    window_clause: bool = field(default=False, compare=False)

    def __post_init__(self) -> None:
        """Convert background data to a tuple; ValueError if they are not triples of terms."""
        # A text is an iterable of letters, and would fail with a message about its first letter.
        if isinstance(self.static, str | bytes):
            raise ValueError("static is text: give triples of three N-Triples terms, or a file to watch() and expect()")
        # Other collections stay as they are: static data of millions of triples may be a lazy or shared one.
        if isinstance(self.static, list | set | frozenset | Iterator):
            object.__setattr__(self, "static", static_triples(self.static))

    @property
    def window(self) -> Window:
        """The only window; ValueError if the query has several or none."""
        if len(self.windows) != 1:
            raise ValueError(f"the query has {len(self.windows)} windows where one is supported: name one stream")
        return self.windows[0].window

    @property
    def streams(self) -> tuple[str, ...]:
        """The distinct IRIs of the streams of its windows, in order."""
        return tuple(dict.fromkeys(window.stream for window in self.windows))

    def with_static(self, static: Collection[Triple]) -> "ContinuousQuery":
        """The same query with other background data."""
        return replace(self, static=static)


def static_triples(triples: Iterable[object]) -> tuple[Triple, ...]:
    """Background data as triples of N-Triples terms; ValueError quotes the first that is not a triple."""
    return tuple(map(_static_triple, triples))


def _static_triple(triple: object) -> Triple:
    """Three N-Triples terms, or a triple of pyoxigraph, which writes its terms so."""
    terms = tuple(map(_written, triple if isinstance(triple, tuple | list) else _parts(triple)))
    if fault := misplaced(terms):
        raise ValueError(f"static has {triple!r:.120}, which is not a triple: it {fault}")
    subject, predicate, item = map(str, terms)
    return subject, predicate, item


def _parts(triple: object) -> list[object]:
    return [getattr(triple, name, None) for name in _PARTS]


def _written(term: object) -> object:
    """The N-Triples text of a term of pyoxigraph, which writes a triple term without its brackets."""
    if term is None or isinstance(term, str):
        return term
    parts = _parts(term)
    # A term, and not a triple term: it has no subject.
    if None in parts:
        return str(term)
    subject, predicate, item = (str(_written(part)) for part in parts)
    return triple_term((subject, predicate, item))


_PARTS = ("subject", "predicate", "object")


def static_missing(query: ContinuousQuery) -> str:
    """The sentence for a query that reads static data which were not given."""
    named = " and ".join(f"<{name}>" for name in query.background)
    return (
        f"the query reads {named}: name the file that has its triples (--static FILE; in an experiment's [query] and "
        "in Python: static)"
    )
