"""Run folders of others: damaged, cut, linked elsewhere, with script in every text; each is a sentence at most."""

import json
import os
import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.report import build
from tests.unsealed import unseal, unsealed
from tests.workbench.runs.folders import bench, change, keep

SCRIPT = '<script>alert(1)</script><img src=x onerror="alert(2)">'


def cut_header(run: Path) -> None:
    (run / "run.json").write_bytes((run / "run.json").read_bytes()[:200])


def other_kind(run: Path) -> None:
    (run / "run.json").write_text('{"format": "other"}')


def nested(run: Path) -> None:
    (run / "run.json").write_text("[" * 100_000)


def wrong_types(run: Path) -> None:
    (run / "run.json").write_text(json.dumps({"format": "streamgauge run", "version": 1, "header": [1]}))


def no_judgement(run: Path) -> None:
    data = unsealed(run / "verdict.json")
    data["verdict"] = {"judgement": SCRIPT, "precision": 1e400, "recall": "all"}
    (run / "verdict.json").write_text(json.dumps(data))


def cut_windows(run: Path) -> None:
    part = next((run / "windows.parquet").glob("*.parquet"))
    part.write_bytes(part.read_bytes()[:100])


def other_windows(run: Path) -> None:
    part = next((run / "windows.parquet").glob("*.parquet"))
    pq.write_table(pa.table({"delay": ["soon"]}), part)


def many_windows(run: Path) -> None:
    part = next((run / "windows.parquet").glob("*.parquet"))
    pq.write_table(pa.table({"delay": pa.repeat(pa.scalar(1.5), 11_000_000)}), part)


def repeated_rows(run: Path) -> None:
    """A file of 30 kB that is a table of 12 GB."""
    part = next((run / "rows.parquet").glob("*.parquet"))
    rows = 600_000
    text = pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int32)), pa.array(['"' + 20_000 * "x" + '"']))
    values = pa.ListArray.from_arrays(pa.array(range(rows + 1), pa.int32()), text)
    columns = {"report": np.zeros(rows, np.int64), "position": np.arange(rows, dtype=np.int32)}
    table = pa.table({**columns, "sign": np.ones(rows, np.int8), "values": values})
    pq.write_table(table, part, compression="zstd")
    assert part.stat().st_size < 3_000_000


def linked_header(run: Path) -> None:
    (run / "run.json").unlink()
    (run / "run.json").symlink_to("/etc/passwd")


def linked_table(run: Path) -> None:
    (run / "extra.parquet").symlink_to("/etc")


def pipe(run: Path) -> None:
    (run / "verdict.json").unlink()
    os.mkfifo(run / "verdict.json")


def surrogate(run: Path) -> None:
    (run / "run.json").write_text(unseal(run / "run.json").replace('"live"', r'"\ud800"'))


def no_query(run: Path) -> None:
    change(run / "run.json", query_text="SELECT " + SCRIPT)


def far_cpu(run: Path) -> None:
    change(run / "run.json", cpu=10**400)


def far_times(run: Path) -> None:
    change(run / "run.json", advanced_to=10**30)
    os.utime(run / "run.json", (1, 15_000_000_000))


def long_number(run: Path) -> None:
    (run / "run.json").write_text(unseal(run / "run.json").replace('"repetition": 1', f'"repetition": {"9" * 5000}'))


DAMAGES = [
    cut_header, other_kind, nested, wrong_types, no_judgement, cut_windows, other_windows, linked_header,
    linked_table, pipe, surrogate, no_query, far_cpu, far_times, long_number,
    pytest.param(many_windows, marks=pytest.mark.slow),
]  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_run_is_a_sentence_and_the_others_stay(tmp_path, damage):
    keep(tmp_path / "sound", build.right())
    damage(keep(tmp_path / "damaged", build.wrong("live")))
    with bench(tmp_path) as client:
        page = client.get("/runs/")
        assert page.status_code == 200
        assert page.text.count('href="/runs/run/') == 2
        assert client.get("/runs/run/sound").status_code == 200
        assert client.get("/runs/run/damaged").status_code in (200, 422)
        report = client.get("/runs/report/damaged")
        assert report.status_code in (200, 400)
        if report.status_code == 400:  # a sentence on what is wrong, not the name of an error in the code
            assert not re.search("[A-Za-z]+(Error|Exception|Invalid)", report.text)
        for answer in (page, report):
            assert "root:" not in answer.text
            assert "<script>alert" not in answer.text


@pytest.mark.parametrize("error", [KeyError("a slip"), ValueError("a slip"), TypeError("a slip")], ids=repr)
def test_an_error_of_the_program_is_no_mistake_in_the_run(tmp_path, monkeypatch, error):
    def failing(*_arguments, **_options):
        raise error

    keep(tmp_path / "sound", build.right())
    keep(tmp_path / "other", build.right())
    for name in ("view", "compare"):
        monkeypatch.setattr(f"streamgauge.workbench.rooms.runs.{name}", failing)
    with bench(tmp_path, raising=False) as client:
        for address in ("/runs/run/sound", "/runs/compare?run=sound&run=other"):
            answer = client.get(address)
            assert (answer.status_code, "a slip" in answer.text) == (500, False)


@pytest.mark.slow
def test_a_table_that_is_small_on_the_disk_only_is_not_read(tmp_path):
    repeated_rows(keep(tmp_path / "run", build.right()))
    with bench(tmp_path) as client:
        assert "too large for this page" in client.get("/runs/report/run").text


@pytest.mark.slow
def test_text_of_a_run_stays_text(tmp_path):
    run = keep(tmp_path / "<b>name<" / SCRIPT.replace("/", ""), build.right())
    change(
        run / "run.json",
        engine=SCRIPT, experiment=SCRIPT, failure=SCRIPT, workload={"name": SCRIPT, SCRIPT: SCRIPT, "seed": SCRIPT},
        versions={SCRIPT: SCRIPT}, machine={SCRIPT: SCRIPT}, options={SCRIPT: SCRIPT},
    )  # fmt: skip
    with bench(tmp_path) as client:
        listed = client.get("/runs/").text
        address = listed.split('href="/runs/run/')[1].split('"')[0]
        for path in ("/runs/", f"/runs/?q={SCRIPT}", f"/runs/run/{address}", f"/runs/report/{address}"):
            text = client.get(path).text
            assert "&lt;img src=x" in text
            for tag in ("<script>alert", "<img src=x", "<b>name"):
                assert tag not in text
        asked = re.findall(r'(?:data-drawing|href)="([^"]*[?](?:drawing|file|saved)=[^"]*)"', text)
        assert len(asked) > 20
        for answer in map(client.get, asked[::5]):
            assert answer.status_code == 200
            assert answer.headers["x-content-type-options"] == "nosniff"
            assert answer.headers["content-type"] == "text/csv; charset=utf-8" or b"<img src=x" not in answer.content


@pytest.mark.parametrize(
    "place", ["..%2f..%2fetc", "%2e%2e/%2e%2e/etc", "sound%00", "link", "link/deep", "nowhere", "sound/../../x"]
)
def test_places_elsewhere_are_refused(tmp_path, place):
    home = tmp_path / "home"
    keep(home / "sound", build.right())
    keep(tmp_path / "outside" / "deep", build.right())
    (home / "link").symlink_to(tmp_path / "outside")
    with bench(home) as client:
        assert client.get(f"/runs/run/{place}").status_code in (400, 404, 422)
        assert client.get(f"/runs/report/{place}").status_code in (400, 404)
        listed = client.get("/runs/").text
        assert listed.count('href="/runs/run/') == 1
        assert "link is a link, and is not followed" in listed


def test_a_half_written_run_says_so(tmp_path):
    run = keep(tmp_path / "half", build.right(), verdict=False)
    data = unsealed(run / "run.json")
    (run / "run.json").write_text(json.dumps(data | {"finished": False}))
    with bench(tmp_path) as client:
        assert "the recording was not finished" in client.get("/runs/").text


def test_a_name_that_is_no_text_is_passed_over(tmp_path):
    keep(tmp_path / "sound", build.right())
    (tmp_path / os.fsdecode(b"bad\xff")).mkdir()
    with bench(tmp_path) as client:
        assert "not text in UTF-8" in client.get("/runs/").text
