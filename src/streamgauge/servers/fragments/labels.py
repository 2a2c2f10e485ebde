"""Time labels: how the times of facts are written as quads (Taelman et al., ESWC 2016, 4 and 5.1)."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from functools import lru_cache
from typing import Final, TypeAlias

from streamgauge.formats.instants import read_moment
from streamgauge.model.algebra import Node, Var
from streamgauge.model.fact import Fact
from streamgauge.model.terms import XSD, Term, datatype
from streamgauge.servers.fragments import DEFAULT, ExpiringQuad, Quad, QuadPattern


class Label(StrEnum):
    """The kind of a fact's time label (Taelman et al., ESWC 2016, section 4)."""

    EXPIRATION = "expiration"  # the final time
    INTERVAL = "interval"  # the initial and the final time
    INSTANT = "instant"  # a fact of 1 ms


class Border(StrEnum):
    """Whether a label's final time belongs to the fact's interval; facts themselves are half open, in ms."""

    EXCLUSIVE = "exclusive"
    INCLUSIVE = "inclusive"  # as in the prototype


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The IRIs (in angle brackets) of labels; ``interval`` is ``None`` if the borders are on the subject itself."""

    name: str
    interval: Term | None
    initial: Term
    final: Term
    expiration: Term
    instant: Term
    singleton: Term
    datatype: str
    """The datatype IRI of times, without brackets; canonical, so that terms pass through stores unchanged."""

    names: str = "http://example.org/graphs#"
    """The beginning of IRIs of graphs, statements, reifiers, groups and interval nodes; a fresh name follows."""


_TMP = "http://example.org/temporal#"
_XSD = "http://www.w3.org/2001/XMLSchema#"

PAPER: Final = Vocabulary(
    "paper",
    interval=f"<{_TMP}interval>",
    initial=f"<{_TMP}initial>",
    final=f"<{_TMP}final>",
    expiration=f"<{_TMP}expiration>",
    instant=f"<{_TMP}instant>",
    singleton="<http://www.w3.org/1999/02/22-rdf-syntax-ns#singletonPropertyOf>",
    datatype=f"{_XSD}dateTime",
)
"""As in the paper's listings, which give no IRI for ``tmp:``; the prototype's is used."""

PROTOTYPE: Final = Vocabulary(
    "prototype",
    interval=None,
    initial=f"<{_TMP}intervalInitial>",
    final=f"<{_TMP}intervalFinal>",
    expiration=f"<{_TMP}expiration>",
    instant=f"<{_TMP}instant>",
    singleton="<http://example.org/singletonproperties#singletonPropertyOf>",
    datatype=f"{_XSD}dateTime",
)
"""As QueryStreamer.js and its server write it (eswc2016), except that they leave the datatype as ``xsd:dateTime``."""

VOCABULARIES: Final = {vocabulary.name: vocabulary for vocabulary in (PAPER, PROTOTYPE)}


@dataclass(frozen=True, slots=True)
class Style:
    """How facts with time are written; if ``grouped``, facts with equal labels share one where the method can."""

    method: str = "graphs"
    label: Label = Label.EXPIRATION
    vocabulary: Vocabulary = PAPER
    grouped: bool = True
    border: Border = Border.EXCLUSIVE
    template: str = "http://localhost:4000/data{?subject,predicate,object}"
    """Template of fragments' addresses (RFC 6570, one form-style expression), which name implicit graphs."""


Bounds: TypeAlias = tuple[int | None, int | None]
"""[initial, final) of a fact, ms; ``None`` for unbounded."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MS = timedelta(milliseconds=1)
FIRST: Final = (datetime(1, 1, 1, tzinfo=UTC) - _EPOCH) // _MS
"""The time (ms) written for a missing initial time: interval labels need both."""
LAST: Final = (datetime(9999, 12, 31, 23, 59, 59, 999_000, tzinfo=UTC) - _EPOCH) // _MS
"""The time (ms) written for an unknown final time."""
_TIMES = frozenset((f"{XSD}dateTime", f"{XSD}dateTimeStamp", "xsd:dateTime", "xsd:dateTimeStamp"))


class LabelError(ValueError):
    """A term that is not a time, or a fact that a label cannot express; the sentence names it."""


def literal(at: int, vocabulary: Vocabulary) -> Term:
    """A time (ms) as a canonical literal; LabelError outside the years 1 to 9999."""
    if not FIRST <= at <= LAST:
        raise LabelError(f"{at} ms is not within the years 1 to 9999")
    # By addition of a timedelta: `fromtimestamp` fails for years before 1970 on some systems.
    text = (_EPOCH + at * _MS).replace(tzinfo=None).isoformat(timespec="milliseconds")
    # The canonical form has no trailing zeros in its fraction. A fraction is always there, so no other zero is cut.
    # Worked examples, without the datatype: 0 is `1970-01-01T00:00:00Z`, 1500 is `1970-01-01T00:00:01.5Z`.
    return f'"{text.rstrip("0").rstrip(".")}Z"^^<{vocabulary.datatype}>'


@lru_cache(100_000)
def instant(term: Term) -> int:
    """The time (ms, rounded down) of a literal, the prototype's unexpanded datatype included; LabelError for others."""
    if datatype(term) not in _TIMES:
        raise LabelError(f"{term:.80} is not a time: expected an xsd:dateTime or xsd:dateTimeStamp")
    text = term[1 : term.rindex('"')]
    try:
        read = read_moment(text)
    except ValueError:
        raise LabelError(f"{term:.80} is not a time of the years 1 to 9999") from None
    if read.tzinfo is None or "T" not in text:
        raise LabelError(f"{term:.80} is not an instant: it needs a date, a time and a time zone")
    return (read - _EPOCH) // _MS


def as_labelled(fact: Fact, label: Label) -> Fact:
    """The fact as it can be read back from a label: an expiration does not store the initial time."""
    return Fact(fact.triple, None, fact.final) if label is Label.EXPIRATION else fact


def label_subject(style: Style, name: str) -> Term:
    """The IRI of a graph, statement, reifier or group of that name."""
    return f"<{style.vocabulary.names}{name}>"


def by_label(facts: Iterable[Fact], style: Style) -> tuple[list[ExpiringQuad], list[list[Fact]]]:
    """Static facts as quads of the default graph, and the other facts in groups with equal labels.

    Every group has one fact if the style is not grouped. LabelError for a fact whose predicate belongs to labels.
    """
    own = label_predicates(style.vocabulary)
    static: list[ExpiringQuad] = []
    facts_by_label: dict[object, list[Fact]] = {}
    # Distinct, in the given order: names of groups are assigned in it.
    for fact in dict.fromkeys(facts):
        if fact.triple[1] in own:
            raise LabelError(f"{fact.triple[1]} is a predicate of time labels, which facts cannot have")
        if fact.static:
            static.append(((*fact.triple, DEFAULT), None))
        else:
            labelled = as_labelled(fact, style.label)
            facts_by_label.setdefault((labelled.initial, labelled.final) if style.grouped else labelled, []).append(
                fact
            )
    return static, list(facts_by_label.values())


def latest_ends(quads: Iterable[ExpiringQuad]) -> list[ExpiringQuad]:
    """Each quad once, with its latest end; ``None``, an unknown end, is later than any."""
    ends: dict[Quad, int | None] = {}
    for quad, end in quads:
        latest = ends.get(quad, end)
        ends[quad] = None if latest is None or end is None else max(latest, end)
    return list(ends.items())


def expiring_label(subject: Term, name: str, fact: Fact, style: Style) -> list[ExpiringQuad]:
    """The quads of a fact's label on a subject, which end with the fact; ``name`` is used for the interval's node.

    LabelError for an instant label on a fact that holds for longer than 1 ms.
    """
    # A worked example: the label of the graph <g> for a fact from 1 s until 11 s, an interval in the paper's
    # vocabulary:
    #
    #     <g> tmp:interval <i> .
    #     <i> tmp:initial "1970-01-01T00:00:01Z" .
    #     <i> tmp:final "1970-01-01T00:00:11Z" .
    return [(quad, fact.final) for quad in _label_quads(subject, fact, style, label_subject(style, f"{name}-interval"))]


def _label_quads(subject: Term, fact: Fact, style: Style, node: Term) -> list[Quad]:
    vocabulary = style.vocabulary
    initial = literal(FIRST if fact.initial is None else fact.initial, vocabulary)
    final = literal(_final_written(fact.final, style.border), vocabulary)
    match style.label:
        case Label.EXPIRATION:
            return [(subject, vocabulary.expiration, final, DEFAULT)]
        case Label.INSTANT:
            if fact.initial is None or fact.final != fact.initial + 1:
                raise LabelError(f"{' '.join(fact.triple):.200} does not hold for 1 ms, as an instant label says")
            return [(subject, vocabulary.instant, initial, DEFAULT)]
        case Label.INTERVAL:
            on = subject if vocabulary.interval is None else node
            borders = [(on, vocabulary.initial, initial, DEFAULT), (on, vocabulary.final, final, DEFAULT)]
            return borders if on is subject else [(subject, vocabulary.interval or "", node, DEFAULT), *borders]


def _final_written(final: int | None, border: Border) -> int:
    if final is None:
        return LAST
    # A fact that holds until 10,000 has 9,999 as its last millisecond.
    return final - (border is Border.INCLUSIVE)


@dataclass(frozen=True, slots=True)
class LabelPatterns:
    """The patterns of a label and its time variables, which are one variable for an instant."""

    patterns: tuple[QuadPattern, ...]
    initial: Var | None
    final: Var | None


def label_patterns(subject: Node, number: int, style: Style) -> LabelPatterns:
    """The patterns that match the label of a subject; ``number`` makes their variables unique."""
    vocabulary, initial, final = style.vocabulary, Var(f"_initial{number}"), Var(f"_final{number}")
    match style.label:
        case Label.EXPIRATION:
            return LabelPatterns((QuadPattern(subject, vocabulary.expiration, final),), None, final)
        case Label.INSTANT:
            return LabelPatterns((QuadPattern(subject, vocabulary.instant, initial),), initial, initial)
        case Label.INTERVAL:
            on = subject if vocabulary.interval is None else Var(f"_interval{number}")
            borders = QuadPattern(on, vocabulary.initial, initial), QuadPattern(on, vocabulary.final, final)
            if vocabulary.interval is None:
                return LabelPatterns(borders, initial, final)
            return LabelPatterns((QuadPattern(subject, vocabulary.interval, on), *borders), initial, final)


def read_bounds(initial: Term | None, final: Term | None, style: Style) -> Bounds:
    """[initial, final) from the values of a form's time variables; LabelError if one is not a time."""
    if style.label is Label.INSTANT:
        at = instant(initial or final or "")
        return at, at + 1
    # FIRST and LAST stand for times that are not known, see `_label_quads`.
    began = FIRST if initial is None else instant(initial)
    ends = LAST if final is None else instant(final)
    return None if began == FIRST else began, None if ends >= LAST else ends + (style.border is Border.INCLUSIVE)


def label_predicates(vocabulary: Vocabulary) -> frozenset[Term]:
    """The predicates of labels, which facts may not use."""
    own = vocabulary.interval, vocabulary.initial, vocabulary.final, vocabulary.expiration, vocabulary.instant
    return frozenset(predicate for predicate in own if predicate is not None)


@dataclass(slots=True)
class Labels:
    """The labels among some quads, by subject, and the quads that are not labels (``others``)."""

    style: Style
    others: list[Quad]
    _values: dict[tuple[Term, Term], list[Term]]
    _read: dict[Term, list[Bounds]] = field(default_factory=dict)

    def of(self, subject: Term) -> list[Bounds]:
        """The bounds of all labels of a subject; empty without a label."""
        bounds = self._read.get(subject)
        if bounds is None:
            bounds = self._read[subject] = self._of(subject)
        return bounds

    def _of(self, subject: Term) -> list[Bounds]:
        vocabulary = self.style.vocabulary
        match self.style.label:
            case Label.EXPIRATION:
                return [read_bounds(None, final, self.style) for final in self._at(subject, vocabulary.expiration)]
            case Label.INSTANT:
                return [read_bounds(bounds, None, self.style) for bounds in self._at(subject, vocabulary.instant)]
            case Label.INTERVAL:
                named = vocabulary.interval is not None
                nodes = self._at(subject, vocabulary.interval or "") if named else [subject]
                return [border for node in nodes for border in self._borders(node)]

    def _borders(self, node: Term) -> list[Bounds]:
        finals = self._at(node, self.style.vocabulary.final)
        initials = self._at(node, self.style.vocabulary.initial)
        # Every pair: with several intervals on one node nothing says which initial belongs to which final.
        return [read_bounds(initial, final, self.style) for initial in initials for final in finals]

    def _at(self, subject: Term, predicate: Term) -> list[Term]:
        return self._values.get((subject, predicate), [])


def read_labels(quads: Iterable[Quad], style: Style) -> Labels:
    """The labels among quads, parsed when they are looked up."""
    own, values, others = label_predicates(style.vocabulary), dict[tuple[Term, Term], list[Term]](), []
    for quad in dict.fromkeys(quads):
        subject, predicate, object_, graph = quad
        if predicate in own and graph == DEFAULT:
            values.setdefault((subject, predicate), []).append(object_)
        else:
            others.append(quad)
    return Labels(style, others, values)
