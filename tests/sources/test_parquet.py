"""The Parquet sink: whole files by count and by time, each answer once whatever is killed, nobody else's folder."""

import shutil
import time

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from streamgauge.cli.main import app
from streamgauge.formats import tables
from streamgauge.formats.lines import encode_answer
from streamgauge.model.answer import Answer
from streamgauge.sources import SourceError, open_sink
from streamgauge.sources.contract import Marked, Settling

QUERY = """SELECT ?s ?v FROM NAMED WINDOW <urn:w> ON <urn:in> [RANGE PT1S STEP PT1S]
WHERE { WINDOW <urn:w> { ?s <urn:p> ?v } }"""
INTEGER = "http://www.w3.org/2001/XMLSchema#integer"


def line(number: int) -> bytes:
    answer = Answer(("s", "instant"), (("<urn:a>", f'"{number}"^^<{INTEGER}>'),), (), "solutions", number, (0, number))
    return b'{"number":%d,' % number + encode_answer(answer)[1:]


def rows(folder) -> list[dict[str, object]]:
    return [row for part in sorted(folder.glob("part-*.parquet")) for row in pq.read_table(part).to_pylist()]


def numbers(folder) -> list[int]:
    return [row["number"] for row in rows(folder)]


def test_a_row_has_number_times_change_and_plain_values(tmp_path):
    sink = open_sink(f"parquet:{tmp_path}")
    bare = Answer(("s",), (("<urn:a>",),), ((None,),), "solutions")
    sink.send(line(7), "7")
    sink.send(encode_answer(bare), "hot/8")
    assert sink.close().sent == 2
    assert sink.close().undelivered == 0
    first, came, left = rows(tmp_path)
    assert (first["number"], first["change"], first["s"], first["?instant"]) == (7, "+", "urn:a", "7")
    assert [first[name].timestamp() for name in ("instant", "start", "end")] == [0.007, 0, 0.007]
    assert (came["number"], came["instant"], came["s"]) == (8, None, "urn:a")
    assert (left["change"], left["s"]) == ("-", None)


def test_files_are_written_by_count_and_by_time(tmp_path):
    sink = open_sink(f"parquet:{tmp_path}?answers=3&every=200")
    for number in range(1, 8):
        sink.send(line(number))
    assert numbers(tmp_path)[:6] == [1, 2, 3, 4, 5, 6]
    end = time.monotonic() + 20
    while numbers(tmp_path) != list(range(1, 8)):
        assert time.monotonic() < end
        time.sleep(0.02)
    sink.close()
    assert sorted(file.name for file in tmp_path.iterdir()) == [
        "open-000000000008.jsonl",
        *(f"part-{first:012}.parquet" for first in (1, 4, 7)),
    ]


def test_a_killed_sink_goes_on_and_passes_over_what_it_has(tmp_path):
    """Killed at each answer, with a mark of some answers before and half a line at the end."""
    folder, mark = tmp_path / "0", 0
    for life in range(12):
        sink = open_sink(f"parquet:{folder}?answers=4")
        assert isinstance(sink, Marked)
        assert isinstance(sink, Settling)
        sink.restore(mark)
        for number in range(mark + 1, life + 2):
            sink.send(line(number))
        assert sink.settle().undelivered == 0
        mark = sink.mark() if life % 3 == 0 else mark
        folder = shutil.copytree(folder, tmp_path / str(life + 1))  # as kill -9 leaves it
        (opened,) = folder.glob("open-*.jsonl")
        with opened.open("ab") as file:
            file.write(b"00000000\t\t{half")
        sink.close()
    open_sink(f"parquet:{folder}").close()
    assert numbers(folder) == list(range(1, 13))


def test_a_disk_that_refuses_a_file_keeps_the_answers(tmp_path, monkeypatch):
    sink = open_sink(f"parquet:{tmp_path}?answers=2")
    with monkeypatch.context() as patch:
        patch.setattr(tables, "writer", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left on device")))
        for number in range(1, 4):
            sink.send(line(number))
    assert numbers(tmp_path) == []
    sink.send(line(4))
    delivery = sink.close()
    assert (delivery.sent, delivery.undelivered, numbers(tmp_path)) == (4, 0, [1, 2, 3, 4])
    assert "a file could not be written" in str(delivery.why)


def test_what_cannot_be_kept_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    first = open_sink(f"parquet:{tmp_path / 'one'}")
    pq.write_table(pa.table({"a": [1]}), tmp_path / "part-1.parquet")
    for place, why in (
        ("one", "another sink is writing there"),
        ("file", "it already exists"),
        ("", "not a file of this sink"),
    ):
        with pytest.raises(SourceError, match=why):
            open_sink(f"parquet:{tmp_path / place}")
    first.send(b"nonsense")
    assert first.close().undelivered == 1
    with pytest.raises(SourceError, match="the sink is closed"):
        first.send(line(1))


def test_the_answers_of_a_durable_query_are_there_once(tmp_path):
    stream, out = tmp_path / "in.jsonl", tmp_path / "out"
    (tmp_path / "q.rq").write_text(QUERY)
    words = ["query", str(tmp_path / "q.rq"), "--stream", str(stream), "--state", str(tmp_path / "state")]
    for count in (4, 9):
        lines = [f'{{"t": {1000 * n}, "add": "<urn:a> <urn:p> \\"{n}\\" ."}}\n' for n in range(count)]
        stream.write_text("".join(lines))
        assert CliRunner().invoke(app, [*words, "--to", f"parquet:{out}"]).exit_code == 0
    assert [(row["number"], row["v"]) for row in rows(out)] == [(n + 1, str(n)) for n in range(8)]


def test_a_line_that_waits_and_was_changed_is_not_written(tmp_path):
    sink = open_sink(f"parquet:{tmp_path}")
    sink.send(line(1))
    sink.settle()
    (waiting,) = tmp_path.glob("open-*.jsonl")
    waiting.write_bytes(waiting.read_bytes().replace(b"1", b"2"))
    assert "damaged" in sink.close().why
    assert numbers(tmp_path) == []
