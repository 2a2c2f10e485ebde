"""Run folders: what is written is read back; a wrong folder is refused with the file and the field."""

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.formats.run import (
    UNFINISHED,
    RunError,
    RunWriter,
    read_run,
    read_verdict,
    stream_path,
    write_run,
    write_verdict,
)
from streamgauge.model.algebra import BGP, Select
from streamgauge.model.answer import Answer
from streamgauge.model.query import ContinuousQuery, StreamWindow, Window
from streamgauge.model.run import Fed, Run, RunHeader, Sample
from streamgauge.model.semantics import R2S, Borders, Report, Semantics, Tick
from streamgauge.model.verdict import Judgement, Verdict, WindowVerdict
from tests.rdf12 import OBJECTS
from tests.unsealed import unsealed

QUERY = ContinuousQuery(Select(BGP(()), ("x",)), (StreamWindow("http://s", Window(10, 5)),))
TERMS = st.sampled_from(["<http://a>", '"x"', '"1"^^<http://www.w3.org/2001/XMLSchema#integer>', "_:b"]) | OBJECTS
LONGS = st.integers(-(2**63), 2**63 - 1)
TRIPLES = st.tuples(TERMS, TERMS, TERMS)


def parse(text: str, dialect: str) -> ContinuousQuery:
    """Stands for the query parser: any text but this one is the query above."""
    if text == "no query":
        raise ValueError("line 1: this is not a query")
    return replace(QUERY, name=f"{dialect}: {text}")


@st.composite
def answers(draw):
    kind = draw(st.sampled_from(["solutions", "triples", "boolean"]))
    variables = tuple(draw(st.lists(st.sampled_from("abc"), max_size=3)))
    width = len(variables)
    rows = st.lists(st.tuples(*[st.one_of(st.none(), TERMS)] * width), max_size=3).map(tuple)
    scope = draw(st.one_of(st.none(), st.tuples(LONGS, LONGS)))
    instant, made = draw(st.one_of(st.none(), LONGS)), draw(st.one_of(st.none(), LONGS))
    return Answer(variables, draw(rows), draw(rows), kind, instant, scope, draw(LONGS), made)


SEMANTICS = st.builds(
    Semantics,
    name=st.text(),
    report=st.sampled_from([frozenset({Report.WINDOW_CLOSE}), frozenset({Report.CONTENT_CHANGE, Report.NON_EMPTY})]),
    tick=st.sampled_from(Tick),
    r2s=st.sampled_from(R2S),
    r2s_able=st.frozensets(st.sampled_from(R2S), min_size=1),
    notify_empty=st.booleans(),
    t0=LONGS,
    borders=st.sampled_from(Borders),
    time_unit=st.integers(1, 1000),
    lateness=st.one_of(st.none(), st.integers(0, 10)),
    sources=st.dictionaries(st.text(), st.text(), max_size=2),
)
JSON = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(2**53), 2**53),
        st.floats(allow_nan=False, allow_infinity=False),
        st.text(),
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=2), st.dictionaries(st.text(), inner, max_size=2)),
    max_leaves=4,
)


@st.composite
def runs(draw):
    text, dialect = draw(st.text()), draw(st.sampled_from(["rspql", "csparql"]))
    static = tuple(draw(st.lists(TRIPLES, max_size=2)))
    header = RunHeader(
        engine=draw(st.text()),
        query=parse(text, dialect).with_static(static),
        query_text=text,
        dialect=dialect,
        semantics=draw(SEMANTICS),
        advanced_to=draw(LONGS),
        started=draw(LONGS),
        begin=draw(LONGS),
        evaluator=draw(st.one_of(st.none(), st.text())),
        factor=draw(st.one_of(st.none(), st.floats(0.1, 10))),
        workload=draw(st.dictionaries(st.text(), JSON, max_size=2)),
        versions=draw(st.dictionaries(st.text(), st.text(), max_size=2)),
        failure=draw(st.one_of(st.none(), st.text())),
        repetition=draw(st.integers(1, 5)),
    )
    fed = draw(st.lists(st.builds(Fed, LONGS, LONGS, LONGS, LONGS, LONGS), max_size=3))
    samples = draw(st.lists(st.builds(Sample, LONGS, LONGS, st.floats(0, 100), st.floats(0, 400), LONGS), max_size=3))
    return Run(header, tuple(draw(st.lists(answers(), max_size=4))), tuple(fed), tuple(samples))


@pytest.mark.slow
@given(runs())
def test_a_run_comes_back(tmp_path_factory, run):
    path = tmp_path_factory.mktemp("run")
    write_run(path, run)
    assert read_run(path, parse) == run
    assert read_run(path, parse).header.semantics.sources == run.header.semantics.sources


def plain(answers=3) -> Run:
    header = RunHeader("live", parse("q", "rspql"), "q", "rspql", Semantics("rspql"), advanced_to=30, started=5)
    said = [Answer(("x",), (("<a>",), (None,)), instant=10 * n, received=n) for n in range(answers)]
    return Run(header, tuple(said), (Fed(0, 0, 1, 2, 7),), (Sample(1, 2, 3.0, 4.0, 5),))


def test_a_folder_without_times_of_making_is_read(tmp_path):
    run = plain()
    write_run(tmp_path, run)
    for part in (tmp_path / "answers.parquet").glob("*.parquet"):
        pq.write_table(pq.read_table(part).drop_columns(["made"]), part)
    assert read_run(tmp_path, parse) == run


def test_a_verdict_without_late_windows_is_read(tmp_path):
    write_run(tmp_path, plain())
    write_verdict(tmp_path, VERDICT)
    for part in (tmp_path / "windows.parquet").glob("*.parquet"):
        pq.write_table(pq.read_table(part).drop_columns(["late"]), part)
    assert not any(window.late for window in VERDICT.windows)
    assert read_verdict(tmp_path) == VERDICT


def test_a_later_run_replaces_an_earlier_one_and_its_verdict(tmp_path):
    write_run(tmp_path, plain(answers=9))
    write_verdict(tmp_path, VERDICT)
    write_run(tmp_path, plain(answers=1))
    assert read_run(tmp_path, parse) == plain(answers=1)
    assert not (tmp_path / "verdict.json").exists()


def test_what_was_flushed_can_be_read_while_recording(tmp_path):
    run = plain()
    writer = RunWriter(tmp_path, run.header)
    writer.answers(run.answers[:2])
    writer.flush()
    writer.answers(run.answers[2:])
    half = read_run(tmp_path, parse)
    assert half.answers == run.answers[:2]
    assert half.header == replace(run.header, failure=UNFINISHED)
    writer.finish(replace(run.header, advanced_to=99))
    whole = read_run(tmp_path, parse)
    assert whole.answers == run.answers
    assert whole.header == replace(run.header, advanced_to=99)


def test_an_interrupted_recording_keeps_what_was_appended(tmp_path):
    run = plain()

    def interrupted():
        with RunWriter(tmp_path, run.header) as writer:
            writer.answers(run.answers)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert read_run(tmp_path, parse).answers == run.answers
    assert read_run(tmp_path, parse).header.failure == UNFINISHED


def full(path: Path) -> None:
    """Make writes to this file end as on a full disk."""
    if not Path("/dev/full").exists():
        pytest.skip("this system has no /dev/full to stand for a full disk")
    path.symlink_to("/dev/full")


@pytest.mark.parametrize("table", ["answers", "rows", "fed", "samples"])
def test_a_full_disk_while_recording_is_said_and_what_was_written_stays(tmp_path, table):
    run = plain()
    writer = RunWriter(tmp_path, run.header)
    writer.answers(run.answers[:2])
    writer.flush()
    full(tmp_path / f"{table}.parquet" / f".part-{2 if table in ('answers', 'rows') else 1:05}.parquet")
    writer.answers(run.answers[2:])
    writer.fed(run.fed)
    writer.samples(run.samples)
    with pytest.raises(RunError, match=rf"{table}\.parquet.*: the disk is full: free some space"):
        writer.flush()
    assert [file for file in tmp_path.rglob(".*") if file.name != ".run.json"] == []
    kept = read_run(tmp_path, parse)
    assert kept.answers[:2] == run.answers[:2]
    assert kept.header.failure == UNFINISHED


def test_a_full_disk_at_the_start_or_the_end_is_said(tmp_path):
    full(tmp_path / ".run.json")
    with pytest.raises(RunError, match=r"run\.json: could not be written: the disk is full"):
        RunWriter(tmp_path, plain().header)
    writer = RunWriter(tmp_path, plain().header)
    full(tmp_path / ".run.json")
    with pytest.raises(RunError, match=r"run\.json: could not be written: the disk is full"):
        writer.finish()
    assert read_run(tmp_path, parse).header.failure == UNFINISHED


@pytest.mark.parametrize("file", [".verdict.json", "windows.parquet/.part-00000.parquet"])
def test_a_full_disk_while_judging_is_said_and_the_earlier_verdict_stays(tmp_path, file):
    write_verdict(tmp_path, VERDICT)
    full(tmp_path / file)
    with pytest.raises(RunError, match="could not be written: the disk is full"):
        write_verdict(tmp_path, VERDICT)
    assert read_verdict(tmp_path) == VERDICT


def test_a_table_may_be_a_single_file(tmp_path):
    run = plain()
    write_run(tmp_path, run)
    for table in ("answers", "rows", "fed", "samples", "static"):
        folder = tmp_path / f"{table}.parquet"
        whole = pa.concat_tables([pq.read_table(file) for file in sorted(folder.glob("*.parquet"))])
        for file in folder.iterdir():
            file.unlink()
        folder.rmdir()
        pq.write_table(whole, folder)
    assert read_run(tmp_path, parse) == run


def changed(root: Path, **fields: object) -> None:
    data = unsealed(root / "run.json")
    header = data["header"] | fields
    (root / "run.json").write_text(json.dumps(data | {"header": {k: v for k, v in header.items() if v != "gone"}}))


def rewritten(root: Path, table: str, change) -> None:
    folder = root / f"{table}.parquet"
    whole = pa.concat_tables([pq.read_table(file) for file in sorted(folder.glob("*.parquet"))])
    for file in folder.iterdir():
        file.unlink()
    pq.write_table(change(whole), folder / "part-00000.parquet")


def without(root: Path, table: str) -> None:
    for file in (root / f"{table}.parquet").iterdir():
        file.unlink()
    (root / f"{table}.parquet").rmdir()


def cut(root: Path, table: str) -> None:
    file = root / f"{table}.parquet" / "part-00001.parquet"
    file.write_bytes(file.read_bytes()[:-30])


SPOILT = {
    "no run.json": (
        lambda r: (r / "run.json").unlink(),
        r"run\.json: missing: this is not a folder of a streamgauge run",
    ),
    "bad JSON": (lambda r: (r / "run.json").write_text('{"format":'), r"run\.json: not readable JSON from line 1"),
    "foreign": (lambda r: (r / "run.json").write_text('{"x": 1}'), r"run\.json: field format: expected"),
    "a list": (lambda r: (r / "run.json").write_text("[]"), r"run\.json: field format: expected"),
    "version": (
        lambda r: (r / "run.json").write_text('{"format": "streamgauge run", "version": 2}'),
        r"run\.json: field version is 2: this release reads version 1",
    ),
    "no header": (
        lambda r: (r / "run.json").write_text('{"format": "streamgauge run", "version": 1}'),
        r"run\.json: field header is missing",
    ),
    "no query": (lambda r: changed(r, query_text=7), r"run\.json: field header\.query_text is missing or not text"),
    "bad query": (
        lambda r: changed(r, query_text="no query"),
        r"field header\.query_text: line 1: this is not a query",
    ),
    "no engine": (lambda r: changed(r, engine="gone"), r"run\.json: field header\.engine is missing"),
    "text for a number": (
        lambda r: changed(r, advanced_to="x"),
        r"run\.json: field header\.advanced_to is 'x': expected a whole",
    ),
    "unknown field": (
        lambda r: changed(r, speed=3),
        r"run\.json: field header\.speed is unknown: the fields are engine",
    ),
    "semantics field": (
        lambda r: changed(r, semantics={"name": "x", "tock": "tuple"}),
        r"run\.json: field header\.semantics\.tock is unknown: the fields are name, report, tick",
    ),
    "semantics value": (
        lambda r: changed(r, semantics={"name": "x", "tick": "often"}),
        r"field header\.semantics\.tick is 'often': expected one of 'tuple', 'element', 'batch', 'time'",
    ),
    "semantics rule": (
        lambda r: changed(r, semantics={"name": "x", "report": []}),
        r"field header\.semantics: semantics x: report needs",
    ),
    "no answers": (lambda r: without(r, "answers"), r"answers\.parquet: missing"),
    "no rows": (lambda r: without(r, "rows"), r"rows\.parquet: missing"),
    "no fed": (lambda r: without(r, "fed"), r"fed\.parquet: missing"),
    "no samples": (lambda r: without(r, "samples"), r"samples\.parquet: missing"),
    "column type": (
        lambda r: rewritten(r, "fed", lambda t: t.set_column(1, "time", t["time"].cast(pa.string()))),
        r"fed\.parquet.*: column time is string where int64 is expected",
    ),
    "no column": (
        lambda r: rewritten(r, "rows", lambda t: t.drop_columns("values")),
        r"rows\.parquet.*: column values is missing: expected are report, position, sign, values",
    ),
    "nulls": (
        lambda r: rewritten(r, "samples", lambda t: t.set_column(1, "rss", pa.nulls(1, pa.int64()))),
        r"samples\.parquet.*: column rss has 1 nulls",
    ),
    "truncated": (lambda r: cut(r, "answers"), r"answers\.parquet/part-00001\.parquet: not a readable Parquet file"),
    "unknown report": (
        lambda r: rewritten(r, "rows", lambda t: t.set_column(0, "report", pa.array([77] * 6))),
        r"rows\.parquet: column report: 77 is not in answers\.parquet",
    ),
    "sign": (
        lambda r: rewritten(r, "rows", lambda t: t.set_column(2, "sign", pa.array([0] * 6))),
        r"rows\.parquet: report 0: column sign is 0: expected 1 or -1",
    ),
    "lost row": (
        lambda r: rewritten(r, "rows", lambda t: t.slice(1)),
        r"rows\.parquet: report 0: column position is 1: expected 0",
    ),
    "row width": (
        lambda r: rewritten(r, "answers", lambda t: t.set_column(6, "variables", pa.array([["x", "y"]] * 3))),
        r"rows\.parquet: report 0: column values: each row needs 2",
    ),
    "kind": (
        lambda r: rewritten(r, "answers", lambda t: t.set_column(5, "kind", pa.array(["odd"] * 3))),
        r"answers\.parquet: report 0: column kind is 'odd': expected one of solutions, triples, boolean",
    ),
    "null variable": (
        lambda r: rewritten(
            r, "answers", lambda t: t.set_column(6, "variables", pa.array([[None]] * 3, t.schema[6].type))
        ),
        r"answers\.parquet: report 0: column variables holds a null",
    ),
    "half a scope": (
        lambda r: rewritten(r, "answers", lambda t: t.set_column(3, "scope_start", pa.array([1] * 3))),
        r"answers\.parquet: report 0: column scope_start and scope_end go together",
    ),
    "order": (
        lambda r: rewritten(r, "answers", lambda t: t.sort_by([("report", "descending")])),
        r"answers\.parquet: column report must grow",
    ),
}


@pytest.mark.parametrize("name", SPOILT)
def test_a_spoilt_folder_is_refused_with_file_and_field(tmp_path, name):
    spoil, said = SPOILT[name]
    write_run(tmp_path, plain())
    spoil(tmp_path)
    with pytest.raises(RunError, match=said):
        read_run(tmp_path, parse)


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    path = tmp_path_factory.mktemp("run")
    write_run(path, plain())
    return path, (path / "run.json").read_text()


@given(field=st.sampled_from(sorted(RunHeader.__dataclass_fields__)), value=JSON)
def test_any_other_value_in_the_header_is_read_or_refused_by_name(written, field, value):
    path, text = written
    (path / "run.json").write_text(text)
    changed(path, **{field: value})
    assert f"run.json: field header.{field}" in (refusal(path) or f"run.json: field header.{field}")


def refusal(path: Path) -> str | None:
    try:
        read_run(path, parse)
    except RunError as error:
        return str(error)
    return None


def test_threads_may_share_a_writer(tmp_path):
    run = plain()
    with RunWriter(tmp_path, run.header) as writer:
        jobs = [lambda: writer.answers(run.answers), lambda: writer.fed(run.fed), writer.flush] * 20
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda job: job(), jobs))
    read = read_run(tmp_path, parse)
    assert len(read.answers) == 20 * len(run.answers)
    assert len(read.fed) == 20 * len(run.fed)


def test_the_stream_of_a_run(tmp_path):
    write_run(tmp_path / "run", plain())
    with pytest.raises(RunError, match=r"stream or .*stream\.parquet: missing"):
        stream_path(tmp_path / "run")
    (tmp_path / "run" / "stream").mkdir()
    assert stream_path(tmp_path / "run") == tmp_path / "run" / "stream"
    write_run(tmp_path / "run", plain(), stream="../shared.parquet")
    with pytest.raises(RunError, match=r"shared\.parquet: missing"):
        stream_path(tmp_path / "run")
    (tmp_path / "shared.parquet").touch()
    assert stream_path(tmp_path / "run").resolve() == tmp_path / "shared.parquet"


WINDOW = WindowVerdict(0, 0, 10, 10, 0, 0.5, 1.0, 1, 1, 2, 7, 1.5, (("<a>", None),), ((), ("<b>",)))
VERDICT = Verdict(
    Judgement.WRONG, "definition", 0, 0.5, 1.0, 0, 0, 0, None, ("x",), (WINDOW,), "1e-9", "", ("arrival", 1.0, 0.5), 3.5
)
WITNESSES = st.lists(st.lists(st.one_of(st.none(), TERMS), max_size=2).map(tuple), max_size=2).map(tuple)


@given(
    st.lists(
        st.builds(
            WindowVerdict,
            index=LONGS,
            precision=st.floats(0, 1),
            recall=st.floats(0, 1),
            true_positives=LONGS,
            expected=LONGS,
            actual=LONGS,
            content=LONGS,
            start=st.one_of(st.none(), LONGS),
            end=st.one_of(st.none(), LONGS),
            instant=st.one_of(st.none(), LONGS),
            report=st.one_of(st.none(), LONGS),
            delay=st.one_of(st.none(), st.floats(-10, 10)),
            missing=WITNESSES,
            surplus=WITNESSES,
        ),
        max_size=3,
    ),
    st.sampled_from(Judgement),
    st.one_of(st.none(), st.tuples(st.text(), st.floats(0, 1), st.floats(0, 1))),
    st.one_of(st.none(), st.floats(-9, 9), st.sampled_from([float("inf")])),
)
def test_a_verdict_comes_back(tmp_path_factory, windows, judgement, other, delay):
    path = tmp_path_factory.mktemp("run")
    verdict = replace(VERDICT, windows=tuple(windows), judgement=judgement, other_clock=other, max_delay=delay)
    write_verdict(path, verdict)
    assert read_verdict(path) == verdict


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda r: (r / "verdict.json").unlink(), r"verdict\.json: missing"),
        (lambda r: cut_windows(r), r"windows\.parquet/part-00000\.parquet: not a readable"),
        (
            lambda r: judged(r, judgement="maybe"),
            r"verdict\.json: field verdict\.judgement is 'maybe': expected one of",
        ),
        (lambda r: judged(r, other_clock=["arrival"]), r"field verdict\.other_clock has 1 items: expected 3"),
        (lambda r: judged(r, variables="x"), r"field verdict\.variables is 'x': expected a list"),
        (lambda r: judged(r, precision=True), r"field verdict\.precision is True: expected a number"),
    ],
)
def test_a_spoilt_verdict_is_refused_with_file_and_field(tmp_path, spoil, message):
    write_verdict(tmp_path, VERDICT)
    spoil(tmp_path)
    with pytest.raises(RunError, match=message):
        read_verdict(tmp_path)


def cut_windows(root: Path) -> None:
    file = root / "windows.parquet" / "part-00000.parquet"
    file.write_bytes(file.read_bytes()[:40])


def judged(root: Path, **fields: object) -> None:
    data = unsealed(root / "verdict.json")
    (root / "verdict.json").write_text(json.dumps(data | {"verdict": data["verdict"] | fields}))
