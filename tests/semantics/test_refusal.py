"""Queries that have no defined answer under some semantics, whoever evaluates them: each with its reason."""

from dataclasses import replace

import pytest

from streamgauge.model.query import ContinuousQuery, StreamWindow, Window
from streamgauge.model.semantics import R2S, Borders, Counting, Due
from streamgauge.query import parse_sparql
from streamgauge.semantics.definition import refuse
from streamgauge.semantics.profiles import FRAGMENTS, RSPQL
from streamgauge.semantics.refusal import RefusedError, StreamNameError, meaningless
from tests.notation import STREAM

PLAIN = "SELECT ?s { ?s <urn:p> ?o }"
NEW = "CONSTRUCT { ?s <urn:q> [] } WHERE { ?s <urn:p> ?o }"
NEWER = "CONSTRUCT { ?s <urn:q> ?o . _:b <urn:q> ?o } WHERE { ?s <urn:p> ?o }"
SAME = "CONSTRUCT { ?s <urn:q> ?o } WHERE { ?s <urn:p> [] }"
ISTREAM, DSTREAM = replace(RSPQL, r2s=R2S.ISTREAM), replace(RSPQL, r2s=R2S.DSTREAM)
BAGS = replace(RSPQL, content=Counting.BAG)
LAST = replace(RSPQL, due=Due.LAST)
TIME, COUNT, MARK = Window(5, 5), Window(5, 5, "count"), Window(5, 5, "landmark")


def asked(text: str, *windows: tuple[str | None, Window], r2s: R2S | None = None) -> ContinuousQuery:
    return ContinuousQuery(parse_sparql(text), tuple(StreamWindow(STREAM, w, name) for name, w in windows), r2s=r2s)


ONE = ((None, TIME),)
NO_ANSWER = [
    (asked(PLAIN), RSPQL, "the query has no window: name a stream and a window over it"),
    (asked(PLAIN, ("urn:w", TIME), ("urn:v", TIME), ("urn:w", COUNT)), RSPQL, "two windows are named urn:w"),
    (asked(PLAIN, ("urn:w", TIME)), BAGS, "over a content that is a bag is not defined: use content = set"),
    (asked(PLAIN, *ONE), replace(LAST, lateness=0), "only the last of several due windows together with a lateness"),
    (asked(PLAIN, *ONE), FRAGMENTS, "facts hold until they end, so use a landmark window"),
    (asked(PLAIN, (None, MARK), ("urn:w", TIME)), FRAGMENTS, "reports at expirations over a window"),
    (asked(PLAIN, (None, MARK)), replace(FRAGMENTS, borders=Borders.CLOSED), r"borders \[o, c\]: facts hold in"),
    (asked(PLAIN, (None, MARK)), replace(FRAGMENTS, lateness=0), "what a server knew later is staleness"),
    (asked(NEW, *ONE), ISTREAM, "Istream of CONSTRUCT with blank nodes in the template: every instant makes new"),
    (asked(NEWER, *ONE), DSTREAM, "Dstream of CONSTRUCT with blank nodes"),
    (asked(NEWER, *ONE, r2s=R2S.ISTREAM), RSPQL, "Istream of CONSTRUCT with blank nodes"),
]


@pytest.mark.parametrize(("query", "semantics", "reason"), NO_ANSWER, ids=lambda item: str(item)[:30])
def test_what_has_no_defined_answer_is_refused_with_the_reason(query, semantics, reason):
    with pytest.raises(RefusedError, match=reason):
        refuse(query, semantics)
    assert meaningless(query, semantics)


@pytest.mark.parametrize(
    ("query", "semantics"),
    [
        (asked(PLAIN, *ONE), BAGS),
        (asked(PLAIN, *ONE), LAST),
        (asked(PLAIN, *ONE), replace(RSPQL, lateness=0)),
        (asked(PLAIN, (None, TIME), (None, COUNT), ("urn:w", TIME)), RSPQL),
        (asked(PLAIN, (None, MARK)), FRAGMENTS),
        (asked(PLAIN, (None, MARK)), replace(FRAGMENTS, borders=Borders.OPEN_CLOSED)),
        (asked(NEW, *ONE), RSPQL),
        (asked(NEW, *ONE, r2s=R2S.RSTREAM), ISTREAM),
        (asked(SAME, *ONE), ISTREAM),
        (asked("SELECT ?s { ?s <urn:p> [] }", *ONE), ISTREAM),
    ],
)
def test_what_has_an_answer_is_not_refused(query, semantics):
    assert meaningless(query, semantics) is None
    refuse(query, semantics)


def test_streams_that_nothing_came_on_are_named_beside_the_one_that_came():
    error = StreamNameError({"urn:b", "urn:a"}, "urn:c")
    assert str(error) == (
        "the query's window is over urn:a and urn:b, but the elements are of urn:c: "
        "name the same stream in both (a source's is named by IRI=SOURCE)"
    )
