"""The suite of benchmarks: the page is that of the results, tables are kept with machine and commit, cases run."""

import json
import tomllib
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import pytest
from benchmarks import engines, hostile, native_peers, results, shapes, shards, speed, stations
from benchmarks.results import PAGE, RECORD, ResultTable, everything, goals_reached, page

from streamgauge.engines import EngineUnavailableError
from streamgauge.workloads import weather


def test_the_page_is_made_of_the_results():
    assert PAGE.read_text(encoding="utf-8") == page(everything()), "run python -m benchmarks.results"


def test_every_result_has_its_machine_commit_command_and_whole_rows():
    for name, result in everything().items():
        assert all((result.title, result.what, result.machine, result.commit, result.command, result.date)), name
        assert result.rows, name
        assert {len(row) for row in result.rows} == {len(result.columns)}, name
        assert (result.reached is None) or result.goal, name


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(results, "FILES", tmp_path)
    return tmp_path


def measure() -> None:
    with ResultTable("mine", ("case", "CPU s")) as table:
        table.add("one", 0.5)


def test_a_table_is_printed_and_not_kept(folder: Path, capsys: pytest.CaptureFixture[str]):
    measure()
    assert capsys.readouterr().out == "\n| case | CPU s |\n|---|---|\n| one | 0.5 |\n"
    assert not list(folder.iterdir())


@pytest.mark.server
def test_a_table_is_kept_where_wished_and_its_goal_stays(folder: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv(RECORD, "1")
    measure()
    kept = json.loads((folder / "mine.json").read_text())
    assert (kept["columns"], kept["rows"]) == (["case", "CPU s"], [["one", "0.5"]])
    assert "cores" in kept["machine"]
    (folder / "mine.json").write_text(json.dumps({**kept, "goal": "1 s", "rows": [["one", "9"]]}))
    measure()
    again = results.load("mine")
    assert (again.goal, again.rows) == ("1 s", [["one", "0.5"]])


@pytest.mark.server
@pytest.mark.usefixtures("folder")
def test_a_table_in_part_replaces_its_rows_and_says_so(monkeypatch):
    """Other rows stay, and so does what the whole was measured by; an unknown row is refused."""
    monkeypatch.setenv(RECORD, "1")
    with ResultTable("mine", ("case", "CPU s")) as table:
        table.add("a", 1)
        table.add("b", 2)
    whole = results.load("mine")
    with ResultTable("mine", ("case", "CPU s"), part=True) as table:
        table.add("b", 3)
    again = results.load("mine")
    assert [tuple(row) for row in again.rows] == [("a", "1"), ("b", "3")]
    assert again.command == whole.command
    assert again.notes[-1].startswith("Measured later: b, by `python -m benchmarks.")
    with pytest.raises(ValueError, match="no such rows: c"), ResultTable("mine", ("case", "CPU s"), part=True) as table:
        table.add("c", 4)


@pytest.mark.server
@pytest.mark.usefixtures("folder")
def test_a_table_is_summed_up_by_its_own_rows(monkeypatch):
    monkeypatch.setenv(RECORD, "1")
    with ResultTable("mine", ("case", "goal"), summary=goals_reached) as table:
        table.add("a", "CPU at least 5x: reached; wall at least 8x: not reached (18,000)")
        table.add("b", "–")
        table.add("c", "reached")
    assert (results.load("mine").ratio, results.load("mine").reached) == ("2 of 3 goals", False)
    with ResultTable("mine", ("case", "goal"), part=True, summary=goals_reached) as table:
        table.add("a", "CPU at least 5x: reached (the peer is judged wrong)")
    assert (results.load("mine").ratio, results.load("mine").reached) == ("2 of 2 goals", True)


def test_no_goal_is_reached_where_none_was_measured():
    assert goals_reached([("a", "–"), ("b", "")]) == ("0 of 0 goals", False)


def test_shapes_are_summed_up_by_their_outcomes():
    rows = [("plain", ""), ("hub", "close: grows; sliding: grows"), ("star", "close: over 20 times")]
    assert shapes.summary(rows) == ("2 of 3 within 20 times, 2 grow with at most 1.1", False)


def test_a_table_that_was_cut_short_is_not_kept(folder: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv(RECORD, "1")
    with pytest.raises(ValueError, match="3 cells for 2 columns of mine"), ResultTable("mine", ("a", "b")) as table:
        table.add(1, 2, 3)
    assert not list(folder.iterdir())


def test_every_case_is_of_a_kind_and_has_a_size():
    for case in speed.cases([]):
        assert case.kind in speed.KINDS
        assert case.size > 0


def test_an_unknown_case_is_named():
    with pytest.raises(SystemExit, match="there is no case nothing: there is select_close"):
        speed.cases(["nothing"])


@pytest.mark.slow
@pytest.mark.parametrize("kind", list(speed.KINDS))
def test_a_small_case_of_each_kind_runs(kind: str):
    sizes = {"channels": 2, "publications": 4} if kind == "broker" else {"stations": 4, "seconds": 6, "slide": 1}
    engine, query = ("nq", "") if kind == "reading" else ("live", "select")
    case = speed.SpeedCase("small", kind, engine, query, **sizes)
    assert speed.least(case, 1) > 0


def test_every_reading_case_is_of_a_format_that_is_written_or_told():
    read = [case for case in speed.cases([]) if case.kind == "reading"]
    assert len(read) >= 12
    for case in read:
        assert speed.least(replace(case, stations=3, seconds=min(case.seconds, 1)), 1) > 0


@pytest.mark.slow
def test_hostile_kinds_are_small_requests_with_names_of_their_own():
    for server in hostile.SERVERS:
        rows = list(hostile.kinds(server))
        assert len({entry.name for entry in rows}) == len(rows) > 15
        for kind in rows:
            assert len(kind.ask.body) <= hostile.LARGEST, kind.name
            assert {entry.kind for entry in (kind.ask, *kind.before, *kind.after)} <= {*hostile.TYPES, "websocket"}


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(file.stem for file in results.HOME.glob("*.py")))
def test_every_program_finds_what_it_imports(name: str):
    assert import_module(f"benchmarks.{name}").__doc__


@pytest.mark.slow
@pytest.mark.parametrize("shape", shapes.shapes([]), ids=lambda shape: shape.name)
def test_every_shape_is_answered_right(shape: shapes.QueryShape):
    for way in shapes.WAYS:
        assert shapes.judged(shape, way) == "right", way


def test_growth_is_the_exponent_in_input_and_output():
    small = shapes.ShapeCost(triples=900, rows=100, start=0.0, cpu=1.0)
    assert shapes.growth(small, shapes.ShapeCost(9_000, 1_000, 0.0, 10.0)) == pytest.approx(1.0)
    assert shapes.growth(small, shapes.ShapeCost(9_000, 1_000, 0.0, 100.0)) == pytest.approx(2.0)
    assert shapes.growth(small, shapes.ShapeCost(9_000, 91_000, 0.0, 100.0)) == pytest.approx(1.0)


def test_the_faults_of_a_shape_are_told_by_triples_and_of_a_product_by_rows_too():
    small, plain = shapes.ShapeCost(100, 900, 0.0, 0.1), shapes.ShapeCost(1000, 1000, 0.0, 0.01)
    figures = shapes.ShapeFigures(small, shapes.ShapeCost(1000, 99_000, 0.0, 1.0), plain)
    assert (figures.times(shapes.QueryShape("all", "")), figures.growth) == pytest.approx((100, 0.5))
    assert figures.faults(shapes.QueryShape("all", "")) == ["over 20 times"]
    assert figures.times(shapes.QueryShape("pairs", "", product=True)) == pytest.approx(2)
    steep = shapes.ShapeFigures(small, shapes.ShapeCost(1000, 9000, 0.0, 2.0), plain)
    assert steep.faults(shapes.QueryShape("pairs", "", product=True)) == ["over 20 times", "grows"]


def test_the_quick_cases_of_engines_are_cases_and_have_every_goal():
    known = {(case.name, case.engine, case.mode) for case in engines.cases(("pipe", "lines", "preload"), bool)}
    live = {(name, "live", mode) for (name, _), modes in engines.QUICK.items() for mode in modes}
    quick = {(name, peer, mode) for (name, peer), modes in engines.QUICK.items() for mode in modes if mode != "lines"}
    assert quick | live <= known
    assert {(goal.name, goal.peer, goal.mode) for goal in engines.GOALS} <= quick


def test_a_peer_in_rust_is_asked_the_queries_that_it_knows():
    assert [*engines.peers_of("average/big/5s/5s")] == ["csparql", "rspjs", "yasper", "spark"]
    assert [*engines.peers_of("select/big/5s/1s")][-2:] == ["rsp-rs", "star"]
    assert [*engines.peers_of("select/big/change")] == ["cqels"]


def figures(**fields: object) -> engines.Figures:
    one = engines.Figures("select/big/5s/5s", "csparql", "csparql-0.9.7", "pipe", 7, 30.0, 24.0, 4000, 6, 6, "right", 1)
    return replace(one, **fields)  # type: ignore[arg-type]


def test_a_goal_is_reached_in_its_mode_by_a_run_that_did_not_fail():
    own = figures(engine="live", cpu=2.0, wall=4.0, rss=100)
    assert engines.ratio_cells(figures(), own) == (
        "15.0x", "6.0x", "40.0x",
        "CPU at least 15x: reached; wall at least 8x: not reached; memory at least 30x: reached",
    )  # fmt: skip
    assert engines.ratio_cells(figures(mode="preload"), own)[-1] == "–"
    assert ": reached" not in engines.ratio_cells(figures(failure="it ended"), own)[-1]


def test_the_program_of_peers_is_named_by_its_sources(tmp_path: Path):
    assert {file.name for file in native_peers.sources()} >= {"Cargo.toml", "Cargo.lock", "main.rs"}
    file = tmp_path / "main.rs"
    file.write_text("fn main() {}")
    before = native_peers.digest([file])
    file.write_text("fn main() { }")
    assert native_peers.digest([file]) != before


def test_the_stream_in_memory_has_the_name_of_the_workloads():
    assert stations.STREAM == weather.STREAM


def test_a_record_of_some_shards_says_their_greatest_gain():
    rows = [("regex/5s", "6", "4", "1.50x"), ("greatest/10s", "12", "7", "1.72x")]
    assert shards._gains(rows) == ("1.72x at greatest/10s", True)
    assert shards._gains([("select/5s", "1", "1", "1.10x")]) == ("1.10x at select/5s, 1.10x at select/5s", False)


def test_crates_are_named_only_and_locked():
    project = tomllib.loads((native_peers.PROJECT / "Cargo.toml").read_text())
    locked = tomllib.loads((native_peers.PROJECT / "Cargo.lock").read_text())["package"]
    versions = {entry["name"]: entry["version"] for entry in locked}
    for name, wanted in project["dependencies"].items():
        assert isinstance(wanted, str) or not {"path", "git", "registry"} & wanted.keys(), name
        version = wanted if isinstance(wanted, str) else wanted["version"]
        assert versions[name].startswith(version.removeprefix("=")), name


def test_peers_without_cargo_are_absent_with_a_sentence(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("PATH", str(tmp_path))
    native_peers.program.cache_clear()
    with pytest.raises(EngineUnavailableError, match="peers in Rust need cargo"):
        native_peers.command("star")


def test_rsp_rs_is_built_without_rocksdb():
    manifest = '[lib]\nname = "rsp_rs"\n[dependencies.oxigraph]\nversion = "0.5"\n'
    assert tomllib.loads(native_peers.without_defaults(manifest))["dependencies"]["oxigraph"] == {
        "version": "0.5", "default-features": False,
    }  # fmt: skip
    with pytest.raises(EngineUnavailableError, match="does not have the dependency oxigraph"):
        native_peers.without_defaults("[dependencies]\n")
