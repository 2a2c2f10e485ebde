"""The definition against cases that are data, and against laws that need no expected value."""

import tomllib
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.model.query import ContinuousQuery, StreamWindow, Window
from streamgauge.model.semantics import (
    R2S,
    Borders,
    Changes,
    Counting,
    Due,
    EmptyAggregate,
    Report,
    Scope,
    Semantics,
    Tick,
)
from streamgauge.query import parse_sparql
from streamgauge.semantics.definition import expected
from streamgauge.semantics.profiles import PROFILES
from streamgauge.semantics.refusal import OutOfOrderError
from tests.notation import STREAM, stream, term, triples

CASES = tomllib.loads((Path(__file__).parent / "cases.toml").read_text(encoding="utf-8"))["case"]
ENUMS = {"tick": Tick, "borders": Borders, "scope": Scope, "r2s": R2S, "content": Counting, "answers": Counting,
         "empty_aggregate": EmptyAggregate, "changes": Changes, "due": Due}  # fmt: skip
PLAIN = {"partial_head", "notify_empty", "t0", "period", "time_unit", "lateness"}
BOOLEAN = "http://www.w3.org/2001/XMLSchema#boolean"


def semantics_of(case) -> Semantics:
    given = {key: ENUMS[key](value) for key, value in case.items() if key in ENUMS}
    given |= {key: value for key, value in case.items() if key in PLAIN}
    given["report"] = frozenset(map(Report, case.get("report", ["window close"])))
    return Semantics(case["name"], **{"tick": Tick.ELEMENT, **given})


def query_of(case) -> ContinuousQuery:
    form = parse_sparql(case.get("query", "SELECT ?s { ?s <urn:p> ?o }"))
    windows = tuple(map(window_of, case["windows"] if "windows" in case else [{"window": case["window"]}]))
    r2s = R2S(case["query_r2s"]) if "query_r2s" in case else None
    return ContinuousQuery(form, windows, r2s, static=triples(case.get("static", "")))


def window_of(given) -> StreamWindow:
    iri = STREAM.replace("test", given.get("on", "test"))
    return StreamWindow(iri, Window(*given["window"], given.get("kind", "time")), given.get("name"))


def value(text: str):
    text = text.strip()
    if text == "-":
        return None
    if text in {"true", "false"}:
        return f'"{text}"^^<{BOOLEAN}>'
    if text.startswith("<"):
        return text
    canonical = {"4.0": term("4").replace("integer", "decimal")}
    return canonical.get(text, term(text))


def rows(text: str) -> Counter:
    return Counter(tuple(map(value, row.split())) for row in text.split(";") if row.strip())


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_case(case):
    found = expected(stream(case["stream"]), query_of(case), semantics_of(case), case["advance"], case.get("t0", 0))
    wanted = [(instant, rows(text)) for instant, text in case["expected"]]
    assert [(report.due.instant, Counter(report.rows)) for report in found] == wanted, case["why"]


def test_time_that_goes_back_without_a_bound_is_bad_input():
    case = CASES[0]
    with pytest.raises(OutOfOrderError, match="goes back from 3 to 1 ms"):
        expected(stream("3: a p b. | 1: a p b."), query_of(case), semantics_of(case), 10, 0)


def test_an_operator_that_the_engine_lacks_is_refused():
    query = replace(query_of(CASES[0]), r2s=R2S.DSTREAM)
    with pytest.raises(ValueError, match="csparql has no Dstream"):
        expected((), query, PROFILES["csparql"], 10, 0)


@given(
    st.lists(st.tuples(st.integers(0, 20), st.integers(0, 4), st.integers(0, 2)), max_size=12),
    st.sampled_from(sorted(PROFILES)),
    st.integers(1, 6),
    st.integers(1, 6),
)
def test_istream_and_dstream_add_up_to_rstream(drawn, name, size, slide):
    """Over the evaluated instants, the last Rstream is the sum of Istreams less the sum of Dstreams."""
    text = " | ".join(f"{t}: s{s} p o{o}." for t, s, o in sorted(drawn))
    semantics = replace(PROFILES[name], notify_empty=True, r2s_able=frozenset(R2S))
    query = ContinuousQuery(parse_sparql("SELECT ?s { ?s <urn:p> ?o }"), (StreamWindow(STREAM, Window(size, slide)),))
    sent = {r2s: expected(stream(text), replace(query, r2s=r2s), semantics, 24, 0) for r2s in R2S}
    total: Counter = Counter()
    for now, came, left in zip(sent[R2S.RSTREAM], sent[R2S.ISTREAM], sent[R2S.DSTREAM], strict=True):
        total.update(came.rows)
        total.subtract(left.rows)
        assert +total == Counter(now.rows)


def test_table_1_of_csrbench():
    from streamgauge.semantics.profiles import classification

    paper = {
        "Report strategy": [
            "Window close and Non-empty content",
            "Content-change",
            "Window close and Non-empty content",
        ],
        "Tick": ["Tuple-driven"] * 3,
        "Output operator": ["Rstream", "Istream", "Rstream, Istream and Dstream"],
        "Empty relation notification": ["Yes", "No", "No"],
        "Time unit": ["seconds", "hundreds milliseconds", "hundreds milliseconds"],
    }
    found = {feature: cells for feature, _, *cells in classification()}
    assert found.keys() == paper.keys()
    for feature, cells in paper.items():
        assert all(ours.startswith(theirs) for ours, theirs in zip(found[feature], cells, strict=True)), feature


@pytest.mark.parametrize("name", sorted(PROFILES))
def test_every_choice_of_a_profile_names_its_source(name):
    """A field that differs from the default says where its value comes from."""
    profile = PROFILES[name]
    default = Semantics("default")
    chosen = {f for f in default.__dataclass_fields__ if f not in {"name", "sources", "t0", "period"}
              and getattr(profile, f) != getattr(default, f)}  # fmt: skip
    assert chosen <= set(profile.sources)
