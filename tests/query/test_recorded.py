"""The texts that CSRBench (2013) and YABench (2016) ran parse, and ask what ours ask.

``recorded/`` holds them as their repositories do: ``csrbench-*`` of dellaglio/csrbench-oracle-engines and -oracle,
``validation-*`` of YABench/csrbench-validation, ``yabench-*`` of YABench/YABench-One (E4 asks E3's).
"""

from pathlib import Path

import pytest

from streamgauge.model.algebra import QueryForm
from streamgauge.model.query import ContinuousQuery, Window
from streamgauge.query import QueryError, detect, fill, parameters, parse, parse_sparql
from tests.query.same import same

HERE = Path(__file__).parent / "recorded"
WORKLOADS = Path(__file__).resolve().parents[2] / "src" / "streamgauge" / "workloads"
RECORDED = {path.stem: path.read_text(encoding="utf-8") for path in sorted(HERE.glob("*.rq"))}
SETTINGS = {
    "q1": {"TEMP": "80", "WSIZE": "10s", "WSLIDE": "10s"},
    "q2": {"TEMP": "80", "WSIZE": "1s", "WSLIDE": "1s"},
    "q3": {"VALUE_MIN": "24", "VALUE_MAX": "49", "WSIZE": "4s", "WSLIDE": "4s"},
    "q4": {"VALUE": "80", "WSIZE": "4s", "WSLIDE": "4s"},
    "q5": {"VALUE": "80", "WSIZE": "5s", "WSLIDE": "1s"},
    "q6": {"VALUE": "75", "WSIZE": "5s", "WSLIDE": "5s"},
    "q7": {"WSIZE": "5s", "WSLIDE": "5s"},
    "e1": {"TEMP": "50.0", "WSIZE": "5s", "WSLIDE": "1s"},
    "e2": {"TEMP": "50.0", "WSIZE": "5s", "WSLIDE": "1s"},
    "e3": {"VARIATION_THRESHOLD": "0.0", "WSIZE": "5s", "WSLIDE": "1s"},
}
OURS = {
    **{f"q{number}": WORKLOADS / "csrbench" / "queries" / f"q{number}.rq" for number in range(1, 8)},
    "e1": WORKLOADS / "weather" / "queries" / "select.rq",
    "e2": WORKLOADS / "weather" / "queries" / "average.rq",
    "e3": WORKLOADS / "weather" / "queries" / "variation.rq",
}
ENGINES = ("csparql", "cqels", "sparqlstream")
CONTINUOUS = sorted(name for name in RECORDED if name.rpartition("-")[2] in ENGINES and "oracle" not in name)
ONE_SHOT = sorted(RECORDED.keys() - set(CONTINUOUS))
DIFFER = {
    "csrbench-q6-sparqlstream": "its FILTER is ?value1 - ?value > 0.5",
    "yabench-e2-oracle-cqels": "a custom average",
    "validation-q4-oracle-cqels": "a custom average",
}


def text(name: str) -> str:
    """The recorded text with its parameters filled."""
    values = SETTINGS[name.split("-")[1]]
    return fill(RECORDED[name], {key: values[key] for key in parameters(RECORDED[name])})


def ours(name: str) -> ContinuousQuery:
    """Our RSP-QL query for a recorded one, with the same parameters."""
    number = name.split("-")[1]
    template = OURS[number].read_text(encoding="utf-8")
    return parse(fill(template, {key: SETTINGS[number][key] for key in parameters(template)}), "rspql")


def test_all_are_there() -> None:
    assert (len(CONTINUOUS), len(ONE_SHOT)) == (21 + 14 + 6, 7 + 9 + 4)
    assert [sum(name.endswith(engine) for name in CONTINUOUS) for engine in ENGINES] == [17, 17, 7]


@pytest.mark.parametrize("name", CONTINUOUS)
def test_a_continuous_text_asks_what_ours_asks(name: str) -> None:
    query, mine = parse(text(name)), ours(name)
    assert detect(text(name)) == name.rpartition("-")[2]
    assert same(query.form, mine.form) is (name not in DIFFER)
    window = Window(5000, 1) if name == "yabench-e3-cqels" else mine.window
    assert query.window == window
    (one,) = query.windows
    assert (one.name, query.r2s) == (None, None)
    assert one.stream in ("http://ex.org/streams/test", "http://cwi.nl/SRBench/observations")
    assert query.name == ("test" if name.endswith("csparql") else None)


@pytest.mark.parametrize("name", [name for name in ONE_SHOT if name not in DIFFER])
def test_an_oracle_text_asks_what_ours_asks(name: str) -> None:
    assert same(parse_sparql(text(name)), ours(name).form)


@pytest.mark.parametrize("name", [name for name in ONE_SHOT if name in DIFFER])
def test_a_custom_function_is_refused_by_name(name: str) -> None:
    with pytest.raises(QueryError, match="custom function <http://yabench/avg> is not supported") as refused:
        parse_sparql(text(name))
    assert refused.value.line > 1


def test_sparqlstream_q6_asks_for_half_a_degree() -> None:
    changed = text("csrbench-q6-sparqlstream").replace("?value1 - ?value > 0.5", "?value1 > ?value")
    assert same(parse(changed).form, ours("csrbench-q6").form)


def form(group: str) -> QueryForm:
    return parse_sparql(f"SELECT ?s {{ {group} }}")


@pytest.mark.parametrize(
    ("one", "two", "equal"),
    [
        ("?s <a:p> ?x . ?x <a:q> ?y FILTER(?y > 1)", "{ ?z <a:q> ?w } { ?s <a:p> ?z } FILTER(?w > 1)", True),
        ("?s <a:p> [ <a:q> ?y ] FILTER(?y > 1)", "?s <a:p> ?z . ?z <a:q> ?w FILTER(?w > 1)", True),
        ("?s <a:p> ?x . ?x <a:q> ?y FILTER(?y > 1)", "?s <a:p> ?x . ?x <a:q> ?y FILTER(?x > 1)", False),
        ("?s <a:p> ?x . ?x <a:q> ?y", "?s <a:p> ?x . ?x <a:q> ?x", False),
        ("?s <a:p> ?x . ?s <a:p> ?y", "?s <a:p> ?x . ?s <a:p> ?x", False),
        ("?s <a:p> ?x", "?s <a:q> ?x", False),
    ],
)
def test_same_tells_queries_apart(one: str, two: str, equal: bool) -> None:
    assert same(form(one), form(two)) is equal
