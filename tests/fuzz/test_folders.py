"""Run folders that are broken in any way: an error that names the place, or a verdict."""

import json
import random
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.formats.run import read_run, read_verdict, stream_path, write_run, write_verdict
from streamgauge.formats.stream import write
from streamgauge.model.query import StreamWindow, Window
from streamgauge.model.run import Sample
from streamgauge.model.verdict import Verdict
from streamgauge.oracle.judging.judge import Means, judge_run
from streamgauge.query import parse, print_query
from streamgauge.report import page
from streamgauge.report.text import verdict_json
from streamgauge.semantics.profiles import RSPQL
from tests.examples import examples
from tests.fuzz.bounds import outcome
from tests.notation import STREAM, stream
from tests.oracle.runs import right_run
from tests.unsealed import unsealed

TEXT = " | ".join(f"{t}: s{t % 3} p {t}f." for t in range(12))
TABLES = ("answers", "rows", "fed", "samples", "windows", "stream", "static")
JSON_VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A right run with a verdict, samples and background data."""
    run = right_run(RSPQL, text=TEXT, advance=12, sparql="SELECT ?s ?o { ?s <urn:p> ?o }")
    over = (StreamWindow(STREAM, Window(5, 5)),)
    query = replace(run.header.query, windows=over, static=(("<urn:s0>", "<urn:in>", "<urn:x>"),))
    header = replace(run.header, query=query, query_text=print_query(query, "csparql"), dialect="csparql")
    samples = tuple(Sample(at, 2**20, 1.0, 50.0, 3) for at in range(3))
    path = tmp_path_factory.mktemp("whole") / "run"
    write_run(path, replace(run, header=header, samples=samples))
    write(stream(TEXT), path / "stream.parquet")
    write_verdict(path, judged(path))
    return path


def judged(path: Path) -> Verdict:
    means = Means(_no_spark, "definition")
    return judge_run(read_run(path, parse), stream_path(path), means)


def _no_spark() -> Any:
    raise AssertionError("a small run needs no Spark")


def shown(path: Path) -> object:
    """All that is done with a folder: read, judged, its kept verdict read, printed and drawn."""
    run = read_run(path, parse)
    verdict = judged(path)
    kept = read_verdict(path)
    return verdict_json(run.header, verdict), verdict_json(run.header, kept), (run, kept)


Breaking = Callable[[Path, random.Random, Any], None]


def flip(path: Path, draw: random.Random, _value: Any) -> None:
    """Bytes changed, cut off or put in."""
    file = _some_file(path, draw)
    data = bytearray(file.read_bytes())
    place = draw.randrange(len(data) + 1)
    match draw.randrange(3):
        case 0:
            for _ in range(draw.randrange(1, 5)):
                data[draw.randrange(len(data))] = draw.randrange(256)
        case 1:
            del data[place:]
        case _:
            data[place:place] = draw.randbytes(draw.randrange(1, 9))
    file.write_bytes(bytes(data))


def lose(path: Path, draw: random.Random, _value: Any) -> None:
    """A file or folder missing, or a folder where a file was."""
    target = draw.choice(sorted(path.iterdir()))
    if target.is_dir():
        shutil.rmtree(target)
    else:
        target.unlink()
    if draw.random() < 0.3:
        target.mkdir()


def field(path: Path, draw: random.Random, value: Any) -> None:
    """A JSON field of another value or type, gone, or one too many."""
    file = path / draw.choice(["run.json", "run.json", "verdict.json"])
    data = unsealed(file)
    holder = data
    while True:
        inner = [item for item in holder.values() if isinstance(item, dict) and item]
        if not inner or draw.random() < 0.4:
            break
        holder = draw.choice(inner)
    name = draw.choice(sorted(holder))
    match draw.randrange(4):
        case 0:
            del holder[name]
        case 1:
            holder[f"{name}x"] = value
        case _:
            holder[name] = value
    file.write_text(json.dumps(data))


def column(path: Path, draw: random.Random, _value: Any) -> None:
    """Columns of a table swapped, dropped, renamed, of another type, or with nulls."""
    file = _some_file(path, draw, ".parquet")
    table = pq.read_table(file)
    names = table.column_names
    name, other = draw.choice(names), draw.choice(names)
    match draw.randrange(5):
        case 0:
            swapped = {name: other, other: name}
            table = table.rename_columns([swapped.get(name, name) for name in names])
        case 1:
            table = table.drop_columns([name])
        case 2:
            table = table.rename_columns([f"{entry}x" if entry == name else entry for entry in names])
        case 3:
            table = table.set_column(names.index(name), name, pa.array([None] * len(table), pa.int8()))
        case _:
            nulls = pa.array([None] * len(table), table.schema.field(name).type)
            table = table.set_column(names.index(name), name, nulls)
    pq.write_table(table, file)


def rows(path: Path, draw: random.Random, _value: Any) -> None:
    """Rows of a table shuffled, doubled or dropped, or numbers far off."""
    file = _some_file(path, draw, ".parquet")
    table = pq.read_table(file)
    order = list(range(len(table))) or [0]
    match draw.randrange(4):
        case 0:
            draw.shuffle(order)
        case 1:
            order += order[:2]
        case 2:
            order = order[: draw.randrange(len(order) + 1)]
        case _:
            numbers = [i for i, item in enumerate(table.schema) if pa.types.is_int64(item.type)]
            if numbers and len(table):
                place = draw.choice(numbers)
                values = table.column(place).to_pylist()
                values[draw.randrange(len(values))] = draw.choice([-(2**63), -1, 0, 2**62, 2**63 - 1])
                table = table.set_column(place, table.schema.field(place), pa.array(values, pa.int64()))
    if len(table):
        table = table.take(order)
    pq.write_table(table, file)


def _some_file(path: Path, draw: random.Random, suffix: str = "") -> Path:
    return draw.choice(sorted(one for one in path.rglob("*") if one.is_file() and one.name.endswith(suffix)))


WAYS: tuple[Breaking, ...] = (flip, lose, field, field, column, rows)


def broken(whole: Path, scratch: Path, ways: list[int], seed: int, value: Any) -> None:
    """One input: the folder copied, broken in these ways, and used."""
    path = scratch / "run"
    shutil.rmtree(path, ignore_errors=True)
    shutil.copytree(whole, path)
    draw = random.Random(seed)
    for way in ways:
        if any(path.iterdir()):
            _break(WAYS[way], path, draw, value)
    result = outcome(lambda: shown(path))
    if isinstance(result, str):
        assert str(path) in result, f"no place in: {result}"
    elif seed % 50 == 0:
        run, kept = result[2]  # type: ignore[index]
        page([(run, kept)], "fuzzed")


def _break(way: Breaking, path: Path, draw: random.Random, value: Any) -> None:
    """What a second way finds already broken stays as it is."""
    try:
        way(path, draw, value)
    except (OSError, ValueError, KeyError, IndexError, pa.ArrowException):
        return


INPUTS = (st.lists(st.integers(0, len(WAYS) - 1), min_size=1, max_size=2), st.integers(0, 2**32), JSON_VALUES)


@pytest.mark.slow
@given(*INPUTS)
@examples(30, prove=5000)
def test_a_broken_folder_is_an_error_with_a_place_or_a_verdict(whole, tmp_path_factory, ways, seed, value):
    broken(whole, tmp_path_factory.getbasetemp(), ways, seed, value)


def test_the_whole_folder_is_right(whole):
    assert judged(whole).judgement == "right"
