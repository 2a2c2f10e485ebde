"""Answers that others recorded, broken in any way: an error that names the place, or a run that gets a verdict."""

import json
import random
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.formats.run import read_run, stream_path
from streamgauge.harness.importing import AnswerTimes, ImportRequest, import_runs
from streamgauge.oracle.judging.judge import Means, judge_run
from streamgauge.query import parse
from streamgauge.semantics.profiles import profile
from tests.examples import examples
from tests.fuzz.bounds import outcome
from tests.fuzz.test_folders import JSON_VALUES

XSD = "http://www.w3.org/2001/XMLSchema#"
QUERY = """REGISTER QUERY hot AS SELECT ?s ?v FROM STREAM <http://ex.org/streams/test> [RANGE 5s STEP ${STEP}]
WHERE { ?s <http://ex.org/v> ?v FILTER(?v > 2) }
"""
STREAM = "".join(f'<http://ex.org/s{t % 2}> <http://ex.org/v> {t}.0^^<{XSD}float> "{t * 1000}"\n' for t in range(12))
QR = "1500000000000\ns\tv\t\n" + "".join(
    f"{1500000000000 + close * 1000 + 20}\n"
    + "".join(f"http://ex.org/s{t % 2}\t{t}.0^^{XSD}float\t\n" for t in range(max(3, close - 5), close))
    for close in (5, 10)
)
SAMPLES = "test\ntime,rss_mem,cpu_percent,mem_percent,threads\n0.5,120.5,33.0,2.1,30\n1.0,130.5,23.0,2.2,31\n"
VALUES = {"WPOLICY": "onwindowclose", "WSIZE": "5s", "WSLIDE": "5s", "STEP": "5s"}
CONFIG = json.dumps({"runs": "1", "graceful": "false", "vars": VALUES, "tests": [{"name": "one", "duration": "11s"}]})


def binding(time: int) -> dict[str, Any]:
    return {
        "s": {"type": "uri", "value": f"http://ex.org/s{time % 2}"},
        "v": {"type": "literal", "datatype": XSD + "float", "value": str(time)},
    }


def relations(close: int) -> dict[str, Any]:
    rows = [{"binding": binding(t)} for t in range(max(3, close - 5), close)]
    return {"head": {"vars": ["s", "v"]}, "timestamp": close * 1000, "results": {"bindings": rows}}


def document(close: int) -> dict[str, Any]:
    rows = [binding(t) for t in range(max(3, close - 5), close)]
    return {
        "head": {"vars": ["s", "v"]},
        "timestamp": close * 1000,
        "received": close * 1000,
        "results": {"bindings": rows},
    }


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One folder with an answer file of every format, and what is needed beside it."""
    path = tmp_path_factory.mktemp("sources")
    test = path / "folder"
    (test / "results").mkdir(parents=True)
    for place in (path, test / "results"):
        (place / "QR_one").write_text(QR)
        (place / "SG_one").write_text(STREAM)
        (place / "P_one").write_text(SAMPLES)
    (test / "config.json").write_text(CONFIG)
    (test / "engine.query").write_text(QUERY)
    (test / "oracle.query").write_text("SELECT ?s ?v { ?s <http://ex.org/v> ?v FILTER(?v > 2) }")
    (path / "csparql-answer.json").write_text(json.dumps({"relations": [relations(5), relations(10)]}))
    (path / "results.json").write_text(json.dumps([document(5), document(10)]))
    (path / "results.jsonl").write_text("\n".join(json.dumps(document(close)) for close in (5, 10)))
    return path


SOURCES = ("QR_one", "csparql-answer.json", "results.json", "results.jsonl", "folder")


def asked(path: Path, draw: random.Random) -> ImportRequest:
    if draw.random() < 0.1:
        return ImportRequest()
    return ImportRequest(
        query=QUERY,
        stream=None if draw.random() < 0.2 else path / "SG_one",
        semantics=profile(draw.choice(["csparql", "yabench", "cqels", "rspql"])),
        samples=None,
        times=draw.choice([None, *AnswerTimes]),
        advance_to=draw.choice([None, None, 11_000]),
        values={"STEP": "5s"},
    )


def mutate(file: Path, draw: random.Random, value: Any) -> None:
    """One change of a text: of a character, a number, a line, a word, or a JSON value."""
    text = file.read_text()
    lines = text.split("\n")
    line = draw.randrange(len(lines))
    place = draw.randrange(len(text) + 1)
    match draw.randrange(7):
        case 0:
            text = (
                text[:place]
                + draw.choice(['"', "\\", "\t", "\n", "{", "]", "\x00", "é", "9", " ", "^^", "<", ""])
                + text[place + 1 :]
            )
        case 1:
            text = text[:place]
        case 2:
            numbers = list(re.finditer(r"-?\d+(?:\.\d+)?", text))
            if numbers:
                result = draw.choice(numbers)
                new = draw.choice(["-1", "0", "1e400", "9" * 18, "9" * 30, "NaN", "", "1.5", "true"])
                text = text[: result.start()] + new + text[result.end() :]
        case 3:
            lines[line : line + 1] = draw.choice([[], [lines[line]] * 2, [str(value)]])
            text = "\n".join(lines)
        case 4:
            other = draw.randrange(len(lines))
            lines[line], lines[other] = lines[other], lines[line]
            text = "\n".join(lines)
        case _:
            text = _of_json(text, draw, value)
    file.write_text(text, encoding="utf-8", errors="surrogatepass" if draw.random() < 0.1 else "replace")


def _of_json(text: str, draw: random.Random, value: Any) -> str:
    try:
        data = holder = json.loads(text)
    except ValueError:
        return text
    if not isinstance(data, dict | list):  # a change before this one left one value
        return json.dumps(value)
    while True:
        keys = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
        if not keys:
            return text
        key = draw.choice(keys)
        if draw.random() < 0.3 or not isinstance(holder[key], dict | list):
            break
        holder = holder[key]
    if draw.random() < 0.3:
        del holder[key]
    else:
        holder[key] = value
    return json.dumps(data)


def imported(sources: Path, scratch: Path, seed: int, value: Any) -> None:
    """One input: a source changed, imported, read again and judged."""
    draw = random.Random(seed)
    path, out = scratch / "sources", scratch / "imported"
    shutil.rmtree(path, ignore_errors=True)
    shutil.rmtree(out, ignore_errors=True)
    shutil.copytree(sources, path)
    source = path / draw.choice(SOURCES)
    files = sorted(one for one in source.rglob("*") if one.is_file()) if source.is_dir() else [source]
    for _ in range(draw.randrange(3)):
        mutate(draw.choice([*files, path / "SG_one"] if source.is_file() else files), draw, value)

    def doing() -> list[object]:
        result = []
        for folder, _ in import_runs([source], asked(path, draw), out):
            means = Means(_no_spark, "definition")
            result.append(judge_run(read_run(folder, parse), stream_path(folder), means))
        return result

    result = outcome(doing)
    if isinstance(result, str):
        assert re.search(r"[/\\]|line \d+|field|--|'", result), f"no place in: {result}"


def _no_spark() -> Any:
    raise AssertionError("a small run needs no Spark")


INPUTS = (st.integers(0, 2**40), JSON_VALUES)


@pytest.mark.slow
@given(*INPUTS)
@examples(30, prove=3000)
def test_a_broken_source_is_an_error_with_a_place_or_a_verdict(sources, tmp_path_factory, seed, value):
    imported(sources, tmp_path_factory.getbasetemp(), seed, value)


@pytest.mark.slow
@pytest.mark.parametrize("name", SOURCES)
def test_whole_sources_get_a_verdict(sources, tmp_path, name):
    request = ImportRequest(QUERY, sources / "SG_one", profile("csparql"), values={"STEP": "5s"})
    request = ImportRequest() if name == "folder" else request
    ((folder, _),) = import_runs([sources / name], request, tmp_path / "out")
    verdict = judge_run(read_run(folder, parse), stream_path(folder), Means(_no_spark, "definition"))
    assert verdict.windows
