"""The public API: what it is called, what it gives, and what it costs to import."""

import doctest
import math
import pydoc
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pyoxigraph as ox
import pytest

import streamgauge
from streamgauge.formats.run import write_run
from streamgauge.formats.stream import write
from streamgauge.model.own_data import OWN_DATA_NAMES
from streamgauge.model.tabular import native
from streamgauge.sources.decoders import OwnDataOptions
from tests.notation import STREAM, stream
from tests.oracle.runs import TEXT, right_run

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "parking"
XSD = "http://www.w3.org/2001/XMLSchema#"
QUERY = """SELECT ?s ?v FROM NAMED WINDOW <urn:w> ON <urn:in> [RANGE PT5S STEP PT5S]
    WHERE { WINDOW <urn:w> { ?s <urn:v> ?v } }"""
READINGS = [(at * 1000, f'<urn:s{at}> <urn:v> "{at}"^^<{XSD}integer> .') for at in (1, 2, 7)]


def test_help_documents_every_public_name():
    text = pydoc.plaintext.document(streamgauge)
    for name in streamgauge.__all__:
        assert name in text, name
        assert getattr(streamgauge, name).__doc__, name
    assert "expect(query" in text
    assert "check(run" in text
    assert set(streamgauge.__all__) <= set(dir(streamgauge))


def test_the_example_of_the_package_is_true():
    names = {"watch": streamgauge.watch}
    result = doctest.DocTestFinder().find(streamgauge, "streamgauge", extraglobs=names)
    (mine,) = [entry for entry in result if entry.name == "streamgauge"]
    assert doctest.DocTestRunner().run(mine).failed == 0


def test_a_name_that_is_none_is_said_with_those_there_are():
    with pytest.raises(AttributeError, match=r"no attribute 'expects': it has Answer, .*expect, load_run"):
        _ = streamgauge.expects


@pytest.mark.server
def test_importing_is_cheap():
    code = "import time; begun = time.process_time(); import streamgauge; print(time.process_time() - begun)"
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert float(output.stdout) < 0.15
    heavy = "import sys, streamgauge; print([n for n in ('pyarrow', 'pyoxigraph', 'pydantic') if n in sys.modules])"
    output = subprocess.run([sys.executable, "-c", heavy], capture_output=True, text=True, check=True)
    assert output.stdout.strip() == "[]"


NATIVES = {
    f'"12"^^<{XSD}integer>': 12,
    f'"+012"^^<{XSD}long>': 12,
    f'"1.50"^^<{XSD}decimal>': Decimal("1.50"),
    f'"1e3"^^<{XSD}double>': 1000.0,
    f'"-INF"^^<{XSD}float>': -math.inf,
    f'"true"^^<{XSD}boolean>': True,
    f'"0"^^<{XSD}boolean>': False,
    f'"2026-03-01T08:00:00Z"^^<{XSD}dateTime>': datetime(2026, 3, 1, 8, tzinfo=UTC),
    f'"2026-03-01"^^<{XSD}date>': date(2026, 3, 1),
    f'"08:00:00"^^<{XSD}time>': time(8),
    '"a \\"b\\"\\n\\u00e9"': 'a "b"\né',
    '"chat"@fr': "chat",
    "<urn:a>": "urn:a",
    "_:b0": "_:b0",
    f'"12000-01-01T00:00:00"^^<{XSD}dateTime>': "12000-01-01T00:00:00",
    f'"x"^^<{XSD}integer>': "x",
    '"P1D"^^<urn:other>': "P1D",
}


@pytest.mark.parametrize("term", NATIVES)
def test_terms_are_native_values(term):
    assert native(term) == NATIVES[term]
    assert type(native(term)) is type(NATIVES[term])
    assert native(None) is None


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("1_000", "integer"),
        ("١٢", "integer"),
        (" 5", "integer"),
        ("infinity", "double"),
        ("nan", "float"),
        ("1_0.5", "double"),
        ("Infinity", "decimal"),
        ("1e3", "decimal"),
        ("TRUE", "boolean"),
        ("2026-01-01", "dateTime"),
        ("2026-W10-1T10:00:00", "dateTime"),
        ("2026-01-01 10:00:00", "dateTime"),
        ("2026-01-01T10:00:00.123456789", "dateTime"),
        ("20260101", "date"),
        ("T10:00", "time"),
    ],
)
def test_forms_that_only_python_reads_and_values_that_it_would_cut_stay_text(text, kind):
    assert native(f'"{text}"^^<{XSD}{kind}>') == text


def test_an_answer_is_values_and_tables():
    (first, *_) = streamgauge.watch(QUERY, READINGS)
    assert first.values() == [{"s": "urn:s1", "v": 1}, {"s": "urn:s2", "v": 2}]
    arrow = first.to_arrow()
    assert [(field.name, str(field.type)) for field in arrow.schema] == [("s", "string"), ("v", "int64")]
    assert arrow.to_pylist() == first.values()
    html = first._repr_html_()
    assert "<th>s</th><th>v</th>" in html
    assert "<td>urn:s1</td><td>1</td>" in html
    assert "report at 5,000 ms of [0, 5,000]: 2 rows" in html


def test_all_answers_are_one_table():
    table = streamgauge.watch(QUERY, READINGS).table()
    assert table.values() == [
        {"instant": 5000, "start": 0, "end": 5000, "change": "+", "s": "urn:s1", "v": 1},
        {"instant": 5000, "start": 0, "end": 5000, "change": "+", "s": "urn:s2", "v": 2},
        {"instant": 10000, "start": 5000, "end": 10000, "change": "+", "s": "urn:s7", "v": 7},
    ]
    assert len(table) == 3
    assert streamgauge.AnswerTable(()).to_arrow().num_rows == 0


SEVEN = datetime(2026, 3, 1, 7, tzinfo=UTC)
MIXED = {
    "int and float": (["1", "1.5"], ["integer", "double"], "double", [1.0, 1.5]),
    "int and text": (["1", "x"], ["integer", "string"], "string", ["1", "x"]),
    "too large": ([str(2**70)], ["integer"], "string", [str(2**70)]),
    "dates": (["2026-03-01"], ["date"], "date32[day]", [date(2026, 3, 1)]),
    "moments": (["2026-03-01T08:00:00+01:00"], ["dateTime"], "timestamp[us, tz=UTC]", [SEVEN]),
    "moments without zone": (["2026-03-01T08:00:00"], ["dateTime"], "timestamp[us]", [datetime(2026, 3, 1, 8)]),
    "exact": (["1.50"], ["decimal"], "decimal128(3, 2)", [Decimal("1.50")]),
    "nothing": ([], [], "string", []),
}  # fmt: skip


@pytest.mark.parametrize("case", MIXED)
def test_columns_have_the_type_of_their_values(case):
    texts, kinds, kind, values = MIXED[case]
    rows = tuple((f'"{text}"^^<{XSD}{name}>',) for text, name in zip(texts, kinds, strict=True))
    column = streamgauge.Answer(("v",), (*rows, (None,))).to_arrow().column("v")
    assert (str(column.type), column.to_pylist()) == (kind, [*values, None])


def test_libraries_that_are_not_here_are_named(monkeypatch):
    answer = streamgauge.Answer(("v",), (('"a"',),))
    for name in ("pandas", "polars"):
        monkeypatch.setitem(sys.modules, name, None)
        with pytest.raises(ImportError, match=f"{name} is not installed here: pip install {name}"):
            getattr(answer, f"to_{name}")()


def test_polars_gets_the_arrow_table(monkeypatch):
    polars = ModuleType("polars")
    polars.from_arrow = lambda table: SimpleNamespace(rows=table.to_pylist())
    monkeypatch.setitem(sys.modules, "polars", polars)
    assert streamgauge.Answer(("v",), (('"a"',),)).to_polars().rows == [{"v": "a"}]


def test_expect_agrees_with_the_engine():
    said = [(answer.instant, sorted(answer.added)) for answer in streamgauge.watch(QUERY, READINGS)]
    due = streamgauge.expect(QUERY, READINGS, advance_to="10s")
    assert [(one.due.instant, sorted(one.rows)) for one in due] == said
    assert due.horizon == 10_000
    assert sorted(row["v"] for row in due[0].values()) == [1, 2]
    asked = streamgauge.watch(QUERY, READINGS).table()
    assert sorted(due.table().bag) == sorted(asked.bag)
    assert "<td>5,000</td><td>0 - 5,000</td><td>2</td><td>2</td>" in due._repr_html_()


def test_expect_reads_own_data_and_dictionaries():
    query = EXAMPLE / "parking.rq"
    first = streamgauge.expect(query, EXAMPLE / "parking.ttl", time_property="sosa:resultTime")
    assert len(first) == 12
    for item in ({"http://park.example/stream": EXAMPLE / "parking.csv"}, str(EXAMPLE / "parking.csv")):
        assert [sorted(entry.rows) for entry in streamgauge.expect(query, item)] == [
            sorted(entry.rows) for entry in first
        ]
    asked = streamgauge.watch(query, EXAMPLE / "parking.trig", time_property="prov:generatedAtTime", end="stream")
    assert [entry for entry in (sorted(entry.added) for entry in asked) if entry] == [
        sorted(entry.rows) for entry in first if entry.rows
    ]


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"query": "SELECT {}"}, "this query has no stream"),
        ({"semantics": "mine"}, "no semantics named"),
        ({"stream": {"urn:other": READINGS}}, "declared as <urn:other>"),
        ({"stream": "nowhere.nq"}, "nowhere.nq: there is no such file"),
        ({"stream": "kafka://localhost/topic"}, "kafka://localhost/topic: a stream that ends is needed"),
    ],
)
def test_what_cannot_be_is_a_mistake_in_a_sentence(wrong, words):
    options = {name: value for name, value in wrong.items() if name not in ("query", "stream")}
    with pytest.raises((streamgauge.MistakeError, ValueError), match=words):
        streamgauge.expect(wrong.get("query", QUERY), wrong.get("stream", READINGS), **options)


def test_an_option_that_is_none_is_refused():
    with pytest.raises(TypeError, match="expect has no option advanced_to"):
        streamgauge.expect(QUERY, READINGS, advanced_to=3)
    with pytest.raises(TypeError, match="check has no option as_json"):
        streamgauge.check("run", as_json=True)


def asked(size: str) -> str:
    window = f"FROM NAMED WINDOW <urn:w> ON <{STREAM}> [RANGE {size} STEP PT0.005S]"
    return f"SELECT ?s {window} WHERE {{ WINDOW <urn:w> {{ ?s <urn:p> ?o }} }}"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A run folder that is right."""
    run = right_run(streamgauge.profile("rspql"))
    text = asked("PT0.005S")
    header = replace(run.header, query=streamgauge.parse_query(text), query_text=text)
    write_run(tmp_path / "run", replace(run, header=header))
    write(stream(TEXT), tmp_path / "run" / "stream.parquet")
    return tmp_path / "run"


def test_a_recorded_run_is_loaded_and_judged(folder):
    run = streamgauge.load_run(folder)
    assert run.folder == folder
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    verdict = streamgauge.check(run)
    assert (str(verdict.judgement), len(verdict.windows)) == ("right", 4)
    assert streamgauge.check(str(folder), max_delay="0ms").judgement == "right but late"
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == before
    spoilt = replace(run, answers=run.answers[1:], folder=None)
    with pytest.raises(streamgauge.MistakeError, match="name its stream table"):
        streamgauge.check(spoilt)
    wrong = streamgauge.check(spoilt, stream=folder / "stream.parquet")
    assert (str(wrong.judgement), wrong.missed) == ("wrong", 1)
    assert "<td>verdict</td><td>wrong</td>" in wrong._repr_html_()
    assert "windows not as expected" in wrong._repr_html_()
    assert "windows not as expected" not in verdict._repr_html_()
    assert "<td>engine</td><td>test</td>" in run._repr_html_()
    assert len(run.table()) == sum(len(answer.added) for answer in run.answers)
    assert run == replace(run, folder=None)


def test_a_run_is_judged_by_another_query_semantics_and_rules(folder):
    assert streamgauge.check(folder, query=asked("PT0.010S")).judgement == "wrong"
    assert streamgauge.check(folder, semantics="csparql").windows
    assert streamgauge.check(folder, rules="csrbench").rules == "csrbench"
    with pytest.raises(streamgauge.MistakeError, match="missing: this is not a folder of a streamgauge run"):
        streamgauge.load_run(folder / "nothing")


BESIDE = """SELECT ?s ?n FROM NAMED WINDOW <urn:w> ON <urn:in> [RANGE PT5S STEP PT5S]
    WHERE { WINDOW <urn:w> { ?s <urn:v> ?v } ?s <urn:name> ?n }"""
NAMED = ("<urn:s1>", "<urn:name>", '"one"')
STATIC = {
    "a list": [NAMED],
    "lists": [list(NAMED)],
    "a set": {NAMED},
    "a tuple": (NAMED,),
    "an iterator": iter([NAMED]),
    "pyoxigraph's": [ox.Triple(ox.NamedNode("urn:s1"), ox.NamedNode("urn:name"), ox.Literal("one"))],
}


@pytest.mark.parametrize("case", STATIC)
def test_a_query_takes_static_data_of_any_collection(case):
    query = replace(streamgauge.parse_query(BESIDE), static=STATIC[case])
    assert isinstance(hash(query), int)
    assert query == replace(query, static=(NAMED,))
    (first, *_) = streamgauge.watch(query, READINGS)
    assert first.values() == [{"s": "urn:s1", "n": "one"}]
    assert streamgauge.expect(query, READINGS)[0].values() == first.values()


@pytest.mark.parametrize(
    ("static", "words"),
    [
        ("data.ttl", "static is text: give triples"),
        (["<urn:a> <urn:b> <urn:c> ."], "which is not a triple: it has the subject None"),
        ([("urn:a", "urn:b", "urn:c")], "which is not a triple: it has the subject urn:a: <IRI> or _:name is expected"),
        ([("<urn:a>", "<urn:b>")], "which is not a triple: it has 2 terms"),
        ([5], "static has 5, which is not a triple"),
    ],
)
def test_static_data_that_are_no_triples_are_refused(static, words):
    with pytest.raises(ValueError, match=words):
        replace(streamgauge.parse_query(BESIDE), static=static)


@pytest.mark.parametrize(
    ("function", "options"),
    [
        ("watch", "streamgauge.watching.Options"),
        ("expect", "streamgauge.api.ExpectOptions"),
        ("check", "streamgauge.api.CheckOptions"),
    ],
)
def test_help_names_every_option(function, options):
    for name in pydoc.locate(options).__annotations__:
        assert f"``{name}``" in getattr(streamgauge, function).__doc__, name


def test_functions_take_every_option_of_own_data():
    assert set(OwnDataOptions.__annotations__) == {"reading", *OWN_DATA_NAMES}
