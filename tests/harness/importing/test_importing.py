"""Importers: answers of others become run folders that are judged; bad input is named with file, line and field."""

import json
from pathlib import Path

import pytest

from streamgauge.formats.run import read_run, stream_path
from streamgauge.formats.stream import elements
from streamgauge.harness.importing import AnswerTimes, ForeignError, ImportRequest, formats, import_runs
from streamgauge.model.verdict import Judgement
from streamgauge.oracle.judging.judge import Means, judge_run
from streamgauge.papers.rules import judge_as
from streamgauge.query import parse
from streamgauge.semantics.profiles import CQELS, CSPARQL, SPARQLSTREAM, YABENCH
from tests.harness.importing import files

A, C = ("http://ex.org/a", "76.0"), ("http://ex.org/c", "80.5")


@pytest.fixture
def stream(tmp_path: Path) -> Path:
    path = tmp_path / "SG_x"
    path.write_text(files.SG)
    return path


def request_(stream: Path, semantics=CSPARQL, **more) -> ImportRequest:
    return ImportRequest(query=files.QUERY, stream=stream, semantics=semantics, values={"LEAST": "50"}, **more)


def imported(source: Path, request: ImportRequest, out: Path, form: str | None = None):
    """The one run of a source, read back from its folder."""
    ((folder, _),) = list(import_runs([source], request, out, form))
    return read_run(folder, parse), folder


def judged(run, folder):
    return judge_run(run, stream_path(folder), Means(pytest.fail, "definition"))


def test_formats_are_listed_from_their_folder():
    assert list(formats()) == ["csrbench", "sparql-json", "yabench", "yabench-folder"]


@pytest.mark.parametrize(
    ("semantics", "instants", "received"),
    [
        (CSPARQL, [None, None], [0, 0]),
        (CQELS, [None, None], [5000, 10_000]),
        (SPARQLSTREAM, [None] * 2, [5000, 10_000]),
    ],
    ids=["csparql", "cqels", "sparqlstream"],
)
def test_what_csrbench_s_timestamps_are_depends_on_the_engine(tmp_path, stream, semantics, instants, received):
    file = files.answers(tmp_path / "answer.json", files.relation(5000, A), files.relation(10_000, C))
    run, _ = imported(file, request_(stream, semantics), tmp_path / "run")
    assert [answer.instant for answer in run.answers] == instants
    assert [answer.received // 1_000_000 for answer in run.answers] == received
    assert run.header.factor == (None if semantics is CSPARQL else 1.0)


def test_csrbench_s_answers_are_judged(tmp_path, stream):
    file = files.answers(tmp_path / "csparql-answer-9.json", files.relation(5000, A), files.relation(10_000, C))
    run, folder = imported(file, request_(stream), tmp_path / "run")
    assert run.header.engine == "csparql"
    assert run.header.advanced_to == 11_000
    assert judged(run, folder).judgement is Judgement.RIGHT
    assert judge_as("csrbench", run, tuple(elements(stream_path(folder)))).judgement is Judgement.RIGHT


def test_times_can_be_said(tmp_path, stream):
    file = files.answers(tmp_path / "mine.json", files.relation(5000, A), files.relation(10_000, C))
    run, _ = imported(file, request_(stream, YABENCH, times=AnswerTimes.INSTANT), tmp_path / "run")
    assert [answer.instant for answer in run.answers] == [5000, 10_000]
    with pytest.raises(ForeignError, match="the meaning of its timestamps is unknown"):
        imported(file, request_(stream, YABENCH), tmp_path / "other")


def test_yabench_s_files_beside_are_found(tmp_path, stream):
    (tmp_path / "QR_x").write_text(files.QR)
    (tmp_path / "P_x").write_text(files.P)
    request = ImportRequest(query=files.QUERY, semantics=YABENCH, values={"LEAST": "50"})
    run, folder = imported(tmp_path / "QR_x", request, tmp_path / "run")
    assert run.header.engine == "C-SPARQL"
    assert run.header.advanced_to == 10_005
    assert [sample.threads for sample in run.samples] == [21, 22]
    assert run.samples[1].at - run.header.started == 500_000_000
    verdict = judged(run, folder)
    assert verdict.judgement is Judgement.RIGHT
    assert [window.delay for window in verdict.windows] == [20.0, 5.0]
    assert judge_as("yabench", run, tuple(elements(stream_path(folder)))).judgement is Judgement.RIGHT


def test_yabench_s_quirks(tmp_path, stream):
    rows = [
        "https://ex.org/a\t12\t\n",
        "urn:b\tplain text\t\n",
        "_:c1\t\t\n",
        "mailto:d\t1^^http://www.w3.org/2001/XMLSchema#integer\t\n",
        "http://ex.org/e\t\n",
    ]
    (tmp_path / "QR_q").write_text(f"1000\ns\tv\t\n6000\n{''.join(rows)}7000\n8000\n")
    run, _ = imported(tmp_path / "QR_q", request_(stream, YABENCH), tmp_path / "run")
    assert run.answers[0].added == (
        ("<https://ex.org/a>", '"12"'),
        ("<urn:b>", '"plain text"'),
        ("_:c1", '""'),
        ('"mailto:d"', '"1"^^<http://www.w3.org/2001/XMLSchema#integer>'),
        ("<http://ex.org/e>", None),
    )
    assert [len(answer.added) for answer in run.answers] == [5, 0, 0]
    assert run.header.workload["notes"] == ["1 rows are too short: their missing values are taken as unbound"]


def test_samples_without_the_engine_s_line(tmp_path, stream):
    (tmp_path / "QR_y").write_text(files.QR)
    (tmp_path / "P_y").write_text(files.P.removeprefix("C-SPARQL\n"))
    run, _ = imported(tmp_path / "QR_y", request_(stream, YABENCH), tmp_path / "run")
    assert (run.header.engine, len(run.samples)) == ("unknown", 2)


def test_a_whole_test_folder(tmp_path):
    folder = files.folder(tmp_path / "test")
    results = dict(import_runs([folder], ImportRequest(), tmp_path / "runs"))
    assert sorted(path.name for path in results) == ["QR_small1", "QR_small2"]
    run = read_run(tmp_path / "runs" / "QR_small1", parse)
    assert (run.header.engine, run.header.semantics.name) == ("C-SPARQL", "yabench")
    assert "?v > 50.0" in run.header.query_text
    assert (run.header.workload["name"], run.header.workload["seed"]) == ("small", "1")
    assert judged(run, tmp_path / "runs" / "QR_small1").judgement is Judgement.RIGHT
    own = parse((tmp_path / "runs" / "QR_small1" / "oracle.rq").read_text())
    assert (own.form, own.window) == (run.header.query.form, run.header.query.window)


def test_settings_are_merged_from_top_test_and_command_line(tmp_path):
    folder = files.folder(tmp_path / "test")
    (folder / "results" / "QR_other").write_text(files.QR)
    (folder / "results" / "SG_other").write_text(files.SG)
    ((path, _),) = list(import_runs([folder], ImportRequest(test="other"), tmp_path / "a"))
    assert "?v > 0.0" in read_run(path, parse).header.query_text
    request = ImportRequest(test="other", values={"LEAST": "60", "enginename": "mine"})
    ((path, _),) = list(import_runs([folder], request, tmp_path / "b"))
    header = read_run(path, parse).header
    assert ("?v > 60" in header.query_text, header.engine) == (True, "mine")


def test_a_trailing_comma_in_the_config_is_passed_over(tmp_path):
    folder = files.folder(tmp_path / "test")
    text = (folder / "config.json").read_text().replace('"runs": "2"', '"runs": "2", "note": "a,]",')
    (folder / "config.json").write_text(text)
    assert len(list(import_runs([folder], ImportRequest(), tmp_path / "runs"))) == 2


def test_an_oracle_query_that_is_no_sparql_is_left_out_with_a_note(tmp_path):
    folder = files.folder(tmp_path / "test")
    (folder / "oracle.query").write_text("SELECT (<http://yabench/avg>(?v) AS ?avg) {")
    results = [one for _, one in import_runs([folder], ImportRequest(), tmp_path / "runs")]
    assert all("oracle.query is left out" in one.notes[-2] for one in results)


def test_an_engine_s_own_window_gives_way_to_the_config_s(tmp_path):
    folder = files.folder(tmp_path / "test")
    text = (folder / "engine.query").read_text()
    (folder / "engine.query").write_text(text.replace("STEP ${WSLIDE}", "STEP 1s"))
    (path, one), _ = import_runs([folder], ImportRequest(), tmp_path / "a")
    assert read_run(path, parse).header.query.window.slide == 5000
    assert "STEP 1s" in (path / "engine.rq").read_text()
    assert "engine.query has another window" in one.notes[-2]
    (path, _), _ = import_runs([folder], ImportRequest(semantics=CSPARQL), tmp_path / "b")
    assert read_run(path, parse).header.query.window.slide == 1000


DOCUMENTS = [
    {"timestamp": 5000, "received": 5020, "scope": [0, 5000], **files.relation(0, A)},
    {"timestamp": 10_000, "received": 10_005, **files.relation(0, C)},
]
for document in DOCUMENTS:
    document["results"] = {"bindings": [one["binding"] for one in document["results"]["bindings"]]}  # type: ignore[index]
DOCUMENTS[0]["timestamp"], DOCUMENTS[1]["timestamp"] = 5000, 10_000


@pytest.mark.parametrize("layout", ["list", "lines"])
def test_sparql_results_with_a_time_each(tmp_path, stream, layout):
    file = tmp_path / ("all.json" if layout == "list" else "all.jsonl")
    text = json.dumps(DOCUMENTS) if layout == "list" else "\n\n".join(map(json.dumps, DOCUMENTS))
    file.write_text(text)
    run, folder = imported(file, request_(stream, YABENCH), tmp_path / "run")
    assert run.answers[0].scope == (0, 5000)
    verdict = judged(run, folder)
    assert verdict.judgement is Judgement.RIGHT
    assert [window.delay for window in verdict.windows] == [20.0, 5.0]


def test_a_boolean_result(tmp_path, stream):
    file = tmp_path / "ask.json"
    file.write_text(json.dumps({"timestamp": 5000, "head": {}, "boolean": True}))
    run, _ = imported(file, request_(stream, YABENCH), tmp_path / "run")
    assert run.answers[0].kind == "boolean"
    assert run.header.factor is None


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("a.json", '{"relations": [', "a.json, line 1, column"),
        ("a.json", '{"relations": 3}', "relations is 3: expected a list"),
        ("a.json", '{"relations": [{"timestamp": "x"}]}', "relations[0].timestamp is 'x': expected a whole number"),
        ("a.json", '{"relations": [{"timestamp": 1}]}', "relations[0].head is missing"),
        ("a.json", '{"relations": [{"timestamp": 1, "head": {"vars": ["s", "s"]}}]}', "relations[0].head.vars"),
        ("a.json", json.dumps({"relations": [files.relation(1, ("no iri", "1"))]}), "binding.s is not an RDF term"),
        ("QR_a", "", "empty"),
        ("QR_a", "soon\n", "QR_a, line 1: expected a time in epoch ms"),
        ("QR_a", "1000\n\t\n", "QR_a, line 2: expected the names of variables"),
        ("QR_a", "1000\ns\t\nurn:a\t\n", "QR_a, line 3: a row before"),
        ("QR_a", "1000\ns\t\n2000\nurn:a\turn:b\t\n", "QR_a, line 4: 2 values for 1 variables"),
        ("QR_a", "1000\ns\t\n2000\n1^^no iri\t\n", "QR_a, line 4"),
        ("a.jsonl", '{"timestamp": 1, "head": {"vars": []}, "results": {"bindings": []}}\n{', "a.jsonl, line 2"),
        ("a.json", '{"head": {"vars": []}}', "timestamp is missing"),
        ("a.json", '{"timestamp": 1, "head": {"vars": []}, "scope": [1]}', "scope"),
        ("a.json", '{"timestamp": 1, "head": {"vars": []}, "results": {"bindings": [{"x": 1}]}}', "not a variable of"),
    ],
)
def test_bad_answers_are_named_with_their_place(tmp_path, stream, name, text, told):
    (tmp_path / name).write_text(text)
    form = "yabench" if name.startswith("QR") else "csrbench" if "relations" in text else "sparql-json"
    with pytest.raises(ForeignError) as error:
        imported(tmp_path / name, request_(stream), tmp_path / "run", form)
    assert told in str(error.value)
    assert name in str(error.value)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"tests": None}, "field tests"),
        ({"tests": [{"name": 3}]}, "tests[0].name"),
        ({"tests": [{"name": "small", "runs": "x"}]}, "field runs"),
        ({"vars": []}, "field vars"),
        ({"vars": {"WPOLICY": "never"}}, "field vars.WPOLICY"),
        ({"inputstream": "nowhere"}, "field inputstream"),
        ({"tests": [{"name": "none"}]}, "no QR_ file"),
    ],
)
def test_bad_configs_are_named_with_their_field(tmp_path, change, told):
    folder = files.folder(tmp_path / "test")
    (folder / "config.json").write_text(json.dumps({**files.CONFIG, **change}))
    with pytest.raises(ForeignError) as error:
        list(import_runs([folder], ImportRequest(), tmp_path / "runs"))
    assert told in str(error.value)


@pytest.mark.parametrize("text", ["C-SPARQL\n", "", "a\nb\nc\n", files.P + "1,2\n", files.P + "1,inf,1,1,1\n"])
def test_bad_samples_are_named_with_their_line(tmp_path, stream, text):
    (tmp_path / "QR_z").write_text(files.QR)
    (tmp_path / "P_z").write_text(text)
    with pytest.raises(ForeignError, match=r"P_z, line \d"):
        imported(tmp_path / "QR_z", request_(stream, YABENCH), tmp_path / "run")


@pytest.mark.parametrize(
    ("request_kwargs", "told"),
    [
        ({}, "--query"),
        ({"query": files.QUERY}, "--stream"),
        ({"query": files.QUERY, "stream": Path("x")}, "--semantics"),
    ],
)
def test_what_is_missing_is_asked_for(tmp_path, request_kwargs, told):
    file = files.answers(tmp_path / "csparql-answer-1.json", files.relation(5000, A))
    with pytest.raises(ForeignError, match=told):
        imported(file, ImportRequest(**request_kwargs), tmp_path / "run")


def test_nothing_is_overwritten_and_unknown_sources_are_refused(tmp_path, stream):
    file = files.answers(tmp_path / "csparql-answer-1.json", files.relation(5000, A))
    imported(file, request_(stream), tmp_path / "run")
    with pytest.raises(ForeignError, match="already exists"):
        imported(file, request_(stream), tmp_path / "run")
    with pytest.raises(ForeignError, match="its format is not recognised"):
        imported(stream, request_(stream), tmp_path / "other")
    with pytest.raises(ForeignError, match="no such file"):
        imported(tmp_path / "none", request_(stream), tmp_path / "other")
    with pytest.raises(ForeignError, match="unknown import format 'csv'"):
        imported(file, request_(stream), tmp_path / "other", "csv")
    with pytest.raises(ForeignError, match="two runs are named"):
        list(import_runs([file, file], request_(stream), tmp_path / "other"))


@pytest.mark.parametrize(
    "variant", ["stream", "stream-yabench/csrbench-dataset.trig.gz", "stream-yabench/csrbench-inputstream.n3t.gz"]
)
def test_csrbench_s_stream_in_its_three_formats(shared_data, variant):
    from streamgauge.workloads import csrbench

    result = csrbench.elements(data=str(shared_data / "csrbench" / variant))
    assert (len(result), result[0].time, result[-1].time) == (34, 0, 33_000)
    assert sum(len(element.added) for element in result) == 15_188


def test_csrbench_s_values_as_the_integers_that_csparql_got(shared_data):
    from streamgauge.workloads import csrbench

    whole = csrbench.elements(data=str(shared_data / "csrbench" / "stream"), values="integer")
    values = [o for element in whole for _, p, o in element.added if p.endswith("#floatValue>")]
    assert len(values) == 1890
    assert all(value.endswith("#integer>") for value in values)
