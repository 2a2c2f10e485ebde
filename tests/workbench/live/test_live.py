"""The room Live: queries over files that run, what is held and paused, what is refused; as forms and as events."""

import json
import re
import time

import httpx
import pytest

from streamgauge.servers.sinks import open_sink
from tests.servers.queries.asks import IN, select
from tests.workbench.serving import opened

pytestmark = pytest.mark.server

HTML = {"accept": "text/html"}
COUNT = (
    "SELECT ?s (COUNT(*) AS ?n) FROM NAMED WINDOW <urn:w> ON <urn:in> [RANGE PT2S STEP PT2S] "
    "WHERE { WINDOW <urn:w> { ?s ?p ?o } } GROUP BY ?s"
)


def line(at, subject="urn:a", value="1"):
    return json.dumps({"t": at, "add": f'<{subject}> <urn:p> "{value}" .'}) + "\n"


@pytest.fixture
def bench(tmp_path):
    with opened(tmp_path) as bench, httpx.Client(base_url=bench.url, timeout=60, headers=HTML) as client:
        client.folder = tmp_path
        yield client


def register(bench, query=COUNT, **fields):
    made = bench.post("/live/new", data={"query": query, **fields})
    return made.headers["location"] if made.status_code == 303 else made


def until(done, seconds=20.0):
    end = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < end
        time.sleep(0.05)


def events(bench, address, count, **headers):
    """The first events: (id, kind, data)."""
    results = []
    with bench.stream("GET", f"{address}/events", headers=headers) as answer:
        given = {"kind": "message", "id": ""}
        for text in answer.iter_lines():
            if text:
                name, _, value = text.partition(": ")
                given[{"event": "kind"}.get(name, name)] = value
            elif "data" in given:
                results.append((given["id"], given["kind"], json.loads(given["data"])))
                given = {"kind": "message", "id": ""}
                if len(results) == count:
                    break
    return results


def test_a_query_over_a_file_that_grows_is_answered_as_it_grows_and_ended(bench):
    log = bench.folder / "log.jsonl"
    log.write_text(line(0) + line(1000, value="2") + line(2500))
    at = register(bench, sources="log.jsonl?follow=1")
    assert at == "/live/queries/q1"
    until(lambda: "<td>urn:a</td><td>2</td>" in bench.get(at).text.replace("&lt;", "").replace("&gt;", ""))
    with log.open("a") as file:
        file.write(line(4100) + line(6100, "urn:b"))
    (first,) = events(bench, f"{at}", 1, **{"Last-Event-ID": "1"})
    assert (first[0], first[2]["columns"]) == ("2", ["s", "n"])
    assert first[2]["rows"] == [[2, "4 s", "+", [["<urn:a>", ""], ["1", ""]]]]
    shown = bench.get("/live/").text
    assert ">log.jsonl?follow=1</td>" in shown
    assert ">5</td>" in shown
    page = bench.get(at).text
    assert bench.get(f"{at}/answers.csv").text.splitlines()[:2] == [
        'answer,"instant, ms",change,s,n',
        "1,2000,+,urn:a,2",
    ]
    first = bench.get(f"{at}/answers.jsonl").text.splitlines()[0]
    assert json.loads(first)["add"] == [["<urn:a>", '"2"^^<http://www.w3.org/2001/XMLSchema#integer>']]
    assert bench.get(f"{at}/answers.xls").status_code == 404
    assert page.count('class="plot ') == 2
    assert "<figcaption>?n by ?s, of each answer" in page
    assert bench.post(f"{at}/end").headers["location"] == "/live/"
    assert "No query is registered." in bench.get("/live/").text
    assert "No stream is read." in bench.get("/live/").text
    assert bench.get(at).status_code == 404


def test_held_answers_wait_while_query_and_source_go_on_and_come_later_in_order(bench):
    at = register(bench)
    publish = bench.post("/live/streams/publish", data={"stream": IN, "elements": line(0) + line(2000)})
    assert publish.headers.get("location") == at, publish.text
    until(lambda: len(events(bench, f"{at}", 1, **{"Last-Event-ID": "0"})) == 1)
    bench.post(f"{at}/hold")
    bench.post("/live/streams/publish", data={"stream": IN, "elements": line(4000) + line(6000)})
    until(lambda: "2 answers wait" in bench.get(at).text)
    assert 'data-last="1"' in bench.get(at).text
    result = events(bench, at, 1, **{"Last-Event-ID": "1"})
    assert result == [("", "held", {})]
    bench.post(f"{at}/release")
    result = events(bench, at, 2, **{"Last-Event-ID": "1"})
    assert [number for number, _, _ in result] == ["2", "3"]


def test_a_paused_source_is_not_read_until_it_is_resumed(bench):
    log = bench.folder / "log.jsonl"
    log.write_text(line(0))
    at = register(bench, sources="log.jsonl?follow=1")
    until(lambda: '<td class="n">1</td>' in bench.get("/live/").text)
    assert bench.post("/live/streams/pause", data={"stream": IN, "query": "q1"}).headers["location"] == at
    with log.open("a") as file:
        file.write(line(2000) + line(4000))
    time.sleep(0.5)
    shown = bench.get(at).text
    assert "<dt>elements</dt><dd>1</dd>" in shown
    assert "<td>paused</td>" in shown
    bench.post("/live/streams/resume", data={"stream": IN})
    until(lambda: "<dt>elements</dt><dd>3</dd>" in bench.get(at).text)
    assert bench.post("/live/streams/pause", data={"stream": "urn:other"}).status_code == 409


def test_a_second_query_shares_the_source_and_a_stream_that_was_read_is_not_read_twice(bench):
    (bench.folder / "log.jsonl").write_text(line(0) + line(2000))
    register(bench, sources="log.jsonl")
    until(lambda: '<span class="state ended">ended</span>' in bench.get("/live/").text)
    assert "its sources have been read to their end" in bench.get("/live/queries/q1").text
    again = register(bench, sources="log.jsonl")
    assert again.status_code == 400
    assert "end q1 first" in again.text
    assert register(bench) == "/live/queries/q3"
    bench.post("/live/queries/q1/end")
    bench.post("/live/queries/q3/end")
    assert register(bench, sources=f"{IN}=log.jsonl") == "/live/queries/q4"


WRONG = [
    ({"query": "SELECT nothing"}, "this query has no stream"),
    ({"query": ""}, "there is no query"),
    ({"lateness": "soon"}, "expected whole milliseconds"),
    ({"semantics": "mine"}, "mine"),
    ({"sources": "-"}, "standard input of the workbench"),
    ({"sources": "../outside.jsonl"}, "only files below"),
    ({"sources": "/etc/passwd"}, "only files below"),
    ({"sources": "out.jsonl"}, "only files below"),
    ({"sources": "folder"}, "leads out of"),
    ({"sources": "own.jsonl?csv_mapping=/etc/passwd"}, "only files below"),
    ({"sources": "own.jsonl?limit=1000000000"}, "at most 16777216"),
    ({"sources": "urn:other=own.jsonl"}, "the query reads"),
    ({"sources": "nowhere.jsonl"}, "no such file"),
    ({"sources": "mqtt://169.254.169.254/topic"}, "link-local"),
    ({"sources": "sse+http://[fe80::1]/topic"}, "link-local"),
    ({"sources": "kafka://127.0.0.1/topic?brokers=0.0.0.0:9092"}, "reserved"),
    ({"sources": "gopher://127.0.0.1/"}, "gopher"),
]


def test_what_is_wrong_is_said_beside_the_form_and_nothing_is_left(bench):
    (bench.folder / "own.jsonl").write_text(line(0))
    (bench.folder / "out.jsonl").symlink_to("/etc/passwd")
    (bench.folder / "folder").mkdir()
    (bench.folder / "folder" / "part.jsonl").symlink_to("/etc/passwd")
    for fields, told in WRONG:
        refused = register(bench, **{"query": COUNT, **fields})
        assert refused.status_code == 400, fields
        assert told in refused.text.split('role="alert"')[1].split("</p>")[0], fields
    assert "No query is registered." in bench.get("/live/").text


def test_terms_of_a_stream_are_text_and_queries_are_bounded(bench):
    at = register(bench, select())
    hostile = json.dumps({"t": 0, "add": '<urn:a> <urn:p> "<script>alert(1)</script>" .'}) + "\n" + line(2500)
    bench.post("/live/streams/publish", data={"stream": IN, "elements": hostile})
    until(lambda: "&lt;script&gt;alert" in bench.get(at).text)
    assert "<script>alert" not in bench.get(at).text
    for _ in range(19):
        register(bench)
    assert "20 queries are registered already" in register(bench).text
    assert bench.get(f"{at}/events", headers={"Last-Event-ID": "x"}).status_code == 400
    assert bench.post(f"{at}/stop").status_code == 404
    assert bench.post("/live/new", content="query=" + "a" * 3_000_000).status_code == 400


def test_a_page_elsewhere_registers_nothing(bench):
    made = bench.post("/live/new", data={"query": COUNT}, headers={"origin": "https://elsewhere.example"})
    assert made.status_code == 403
    assert "No query is registered." in bench.get("/live/").text


def test_events_of_a_server_are_a_source_and_it_is_let_go_with_its_query(bench):
    sink = open_sink("sse+http://127.0.0.1:0/readings")
    try:
        at = register(bench, sources=sink.url.replace("http", "sse+http", 1) + "?last=0")
        for time_ in (0, 1000, 2500):
            sink.send(line(time_).encode())
        until(lambda: "<dt>elements</dt><dd>3</dd>" in bench.get(at).text)
        until(lambda: "<dt>answers</dt><dd>1</dd>" in bench.get(at).text)
        bench.post(f"{at}/end")
        assert "No stream is read." in bench.get("/live/").text
    finally:
        sink.close()


def test_queries_stand_side_by_side_and_show_their_operators(bench):
    at = register(bench)
    assert "none has come yet" in bench.get(f"{at}/plan").text
    other = register(bench, COUNT.replace("COUNT(*)", "MAX(?o)"))
    bench.post("/live/streams/publish", data={"stream": IN, "elements": line(0) + line(2000) + line(4000)})
    until(lambda: bench.get("/live/board").text.count('<svg class="plot board"') == 2)
    asked = {"show.q1": "rows", "threshold.q1": "1", "threshold.q2": "much"}
    until(lambda: "2 of 2 values at or above 1, the last at 4 s." in bench.get("/live/board", params=asked).text)
    board = bench.get("/live/board", params=asked).text
    assert "the threshold is much: expected a number" in board
    only = bench.get("/live/board", params={"q": "q2"}).text
    assert ('id="panel-q1"' in only, 'id="panel-q2"' in only) == (False, True)
    assert "triple patterns" in bench.get(f"{at}/plan").text
    bench.post("/live/streams/publish", data={"stream": IN, "elements": line(5000) + line(6000) + line(8000)})
    until(
        lambda: re.search(r">group</span></th>\n<td[^>]*>\?s</td>\n<td class=\"n\">[1-9]", bench.get(f"{at}/plan").text)
    )
    bench.post(f"{at}/end")
    assert bench.get(f"{at}/plan").status_code == 404
    assert bench.get(f"{other}/plan").status_code == 200
    for address in ("/live/streams/pause", f"{other}/hold"):
        assert bench.get(address, follow_redirects=True).status_code == 200
