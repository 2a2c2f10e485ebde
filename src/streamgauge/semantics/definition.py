"""The definition: due reports and what they send, after SECRET and CQL; small, slow and plainly correct.

``due_reports`` selects the candidates (``due.py``) by their contents, ``answered`` evaluates the query over each, and
``streamed`` is the relation-to-stream operator.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, TypeAlias

from streamgauge.model.algebra import QueryForm
from streamgauge.model.element import StreamElement
from streamgauge.model.query import ContinuousQuery
from streamgauge.model.report import DueReport, ExpectedReport
from streamgauge.model.semantics import R2S, Changes, Counting, Report, Semantics
from streamgauge.model.terms import Row, Triple
from streamgauge.semantics.arrivals import Contents, Head, admit, arrivals, arrived_triples, content, size
from streamgauge.semantics.beginning import is_sent
from streamgauge.semantics.due import candidates
from streamgauge.semantics.evaluate import Loaded, snapshot_under
from streamgauge.semantics.honoured import DEFINED, not_honoured
from streamgauge.semantics.refusal import RefusedError, at_odds, indefinite
from streamgauge.semantics.updates import updates

SIGN: Final = "±"
"""The sign column under ``Istream and Dstream``; not a name of a SPARQL variable."""
CAME: Final = '"+"'
WENT: Final = '"-"'


def streamed(
    evaluated: Iterable[tuple[DueReport, tuple[Row, ...]]], r2s: R2S, semantics: Semantics
) -> Iterator[tuple[DueReport, tuple[Row, ...]]]:
    """The answer sent at each evaluated instant; empty answers only if the semantics sends them.

    Istream and Dstream are differences to the bag of the last evaluated instant, initially empty; under both, each row
    has an additional sign column.
    """
    before: Counter[Row] = Counter()
    for due, solutions in evaluated:
        now = Counter(set(solutions) if semantics.answers is Counting.SET else solutions)
        rows = difference(r2s, before, now)
        # Also if nothing is sent: before ``since``, and for empty differences.
        before = now
        if (rows or semantics.notify_empty) and is_sent(due.instant, semantics):
            yield due, rows


def columns(variables: tuple[str, ...], r2s: R2S) -> tuple[str, ...]:
    """The columns of sent rows for a query with these variables."""
    return (*variables, SIGN) if r2s is R2S.CHANGES else variables


def difference(r2s: R2S, before: Counter[Row], now: Counter[Row]) -> tuple[Row, ...]:
    """The rows that a relation-to-stream operator sends for an answer and the one before."""
    match r2s:
        case R2S.RSTREAM:
            return tuple(now.elements())
        case R2S.ISTREAM:
            return tuple((now - before).elements())
        case R2S.DSTREAM:
            return tuple((before - now).elements())
        case R2S.CHANGES:
            return (*signed((now - before).elements(), CAME), *signed((before - now).elements(), WENT))


def signed(rows: Iterable[Row], sign: str) -> tuple[Row, ...]:
    """The rows with a sign column."""
    return tuple((*row, sign) for row in rows)


Held: TypeAlias = Sequence[tuple[DueReport, Contents]]
"""The due reports of one stream with the contents of the query's windows."""


def expected(
    elements: Iterable[StreamElement], query: ContinuousQuery, semantics: Semantics, advanced_to: int, t0: int
) -> tuple[ExpectedReport, ...]:
    """All reports that should be sent up to ``advanced_to`` (ms) if the first window starts at ``t0`` (ms).

    Raises RefusedError for what the definition does not cover, OutOfOrderError for disorder without a lateness bound.
    """
    refuse(query, semantics)
    return answered(held(elements, query, semantics, advanced_to, t0), query, semantics)


def held(
    elements: Iterable[StreamElement], query: ContinuousQuery, semantics: Semantics, advanced_to: int, t0: int
) -> Held:
    """The due reports up to ``advanced_to`` (ms), with their contents."""
    counted, _late = admit(facts(elements), semantics, query.windows, t0)
    return due_reports(counted, query, semantics, advanced_to, t0)


def answered(reports: Held, query: ContinuousQuery, semantics: Semantics) -> tuple[ExpectedReport, ...]:
    """The sent reports, from the contents of all due ones."""
    sizes = {due: size(contents, semantics.content) for due, contents in reports}
    snapshot = snapshot_under(query, semantics)
    evaluated: list[tuple[DueReport, tuple[Row, ...]]] = []
    loaded: Loaded | None = None
    for due, contents in reports:
        # Consecutive contents mostly grow: the graph of the report before is extended rather than rebuilt.
        loaded = Loaded(contents, loaded)
        evaluated.append((due, snapshot.at(due.instant).rows(contents, loaded)))
    r2s = operator(query, semantics)
    names = columns(snapshot.variables, r2s)
    return tuple(ExpectedReport(due, names, rows, sizes[due]) for due, rows in streamed(evaluated, r2s, semantics))


def refuse(
    query: ContinuousQuery, semantics: Semantics, walked: Callable[[QueryForm], str | None] = indefinite
) -> None:
    """Raise RefusedError for an undefined query, and for an operator that the semantics' engine lacks.

    ``walked`` gives the reason in the query's form, for a caller that asks about a form under many semantics.
    """
    # The first reason that applies is shown: fields of the semantics before parts of the query, as the remedy for those
    # is another semantics.
    strange = not_honoured(semantics, DEFINED, "the definition")
    if reason := strange or at_odds(query, semantics) or walked(query.form):
        raise RefusedError(reason)
    r2s = operator(query, semantics)
    if r2s not in semantics.r2s_able:
        able = ", ".join(sorted(semantics.r2s_able))
        raise RefusedError(
            f"{semantics.name} has no {r2s} (it has {able}): change the query's keyword or the semantics"
        )


def operator(query: ContinuousQuery, semantics: Semantics) -> R2S:
    """The R2S operator: the query's keyword, else the default of the semantics."""
    return query.r2s or semantics.r2s


def facts(elements: Iterable[StreamElement]) -> Iterator[StreamElement]:
    """The elements; RefusedError for one with removed triples, which windows do not define."""
    for element in elements:
        if element.removed:
            raise RefusedError(
                f"element {element.sequence} of {element.stream} removes triples: windows take added triples only, "
                "say until when they hold instead"
            )
        yield element


def due_reports(
    admitted: Sequence[StreamElement], query: ContinuousQuery, semantics: Semantics, advanced_to: int, t0: int
) -> list[tuple[DueReport, Contents]]:
    """The due reports with their contents: candidates that satisfy non-empty content and content change."""
    heads = [Head.of(element) for element in admitted]
    arrived = arrived_triples(admitted, query.windows, semantics)
    times = [arrival.time for arrival in arrived]
    ranked = arrivals(heads, query.windows, semantics.tick)

    def look(candidate: DueReport) -> tuple[DueReport, Contents]:
        windows = zip(query.windows, candidate.views, strict=True)
        return candidate, tuple(content(arrived, times, window.stream, view) for window, view in windows)

    return list(selected(map(look, candidates(ranked, query.windows, semantics, t0, advanced_to)), semantics))


def selected(
    looked: Iterable[tuple[DueReport, Contents]], semantics: Semantics
) -> Iterator[tuple[DueReport, Contents]]:
    """The candidates, in order, whose contents satisfy the strategies about content; before the first is nothing."""
    held_triples = _HeldTriples(semantics.content)
    for candidate, contents in looked:
        # Updates compare no contents: an element is reported when it comes, even if its triples were there before.
        if semantics.content is Counting.UPDATES:
            if updates(contents, candidate.instant):
                yield candidate, contents
            continue
        if not semantics.report & {Report.NON_EMPTY, Report.CONTENT_CHANGE}:
            yield candidate, contents
            continue
        entered, left = held_triples.move(contents)
        if Report.NON_EMPTY in semantics.report and not held_triples.any:
            continue
        if Report.CONTENT_CHANGE not in semantics.report or entered or (left and semantics.changes is Changes.BOTH):
            yield candidate, contents


class _HeldTriples:
    """The pairs (window, triple) of one content after the other, kept up to date by the arrivals that differ.

    Under content change each report has nearly the same content as the one before, so comparing whole contents took
    most of a judgement's time.
    """

    def __init__(self, counting: Counting) -> None:
        self._counting = counting
        self._contents: Contents = ()
        self._copies: Counter[tuple[int, Triple]] = Counter()

    @property
    def any(self) -> bool:
        """Whether the content has a triple."""
        return bool(self._copies)

    def move(self, contents: Contents) -> tuple[bool, bool]:
        """Go to the next content; whether a triple (in a bag: a copy of one) entered, and whether one left."""
        before, self._contents = self._contents or ((),) * len(contents), contents
        net: Counter[tuple[int, Triple]] = Counter()
        for window, (old, new) in enumerate(zip(before, contents, strict=True)):
            for some, others, sign in ((new, old, 1), (old, new, -1)):
                # By identity: both contents are kept, so no other object has an arrival's identity.
                known = set(map(id, others))
                for arrival in (arrival for arrival in some if id(arrival) not in known):
                    for triple in arrival.triples:
                        net[window, triple] += sign
        return self._apply(net)

    def _apply(self, net: Counter[tuple[int, Triple]]) -> tuple[bool, bool]:
        entered = left = False
        for pair, change in net.items():
            copies = self._copies.pop(pair, 0)
            if copies + change:
                self._copies[pair] = copies + change
            as_set = self._counting is Counting.SET
            entered |= change > 0 and not (as_set and copies)
            left |= change < 0 and not (as_set and copies + change)
        return entered, left
