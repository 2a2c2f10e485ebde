"""Disks that lose what they were given (fsync), or become read-only: nothing acknowledged is lost, and it is said."""

import os
from random import Random

import httpx
import pytest

from streamgauge.formats.lines import encode_element
from streamgauge.servers.fragments.store.disk import DiskStore
from tests.prove import killed_queries as kq
from tests.prove.failing_disk import FailingDisk
from tests.prove.test_killed_queries import free_port
from tests.servers.broker.process import Process, until
from tests.servers.broker.test_full_disk import many, publish, rows, students
from tests.servers.broker.world import BASE, select
from tests.servers.failing_reads import compiler
from tests.servers.fragments.pages.sockets import process, tokens
from tests.servers.fragments.writes.test_http import UPDATE

pytestmark = [pytest.mark.prove, pytest.mark.skipif(compiler() is None, reason="no C compiler: cc is not there")]

TOKEN = "a-token-of-more-than-sixteen"
FAULTS = {"sync": "input/output error (EIO)", "write": "read-only (EROFS)"}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_broker_says_what_its_disk_has_and_loses_nothing(tmp_path, fault):
    folder = tmp_path / "kept"
    folder.mkdir()
    disk = FailingDisk(folder, tmp_path)
    acknowledged = {}
    with (
        Process(folder, environment={**os.environ, **disk.environment}) as broker,
        httpx.Client(base_url=broker.url, timeout=300) as http,
    ):
        assert publish(http, "base", BASE).is_success
        assert http.put("/channels/students", content=select("?x a :Student")).is_success
        for number in range(5):
            acknowledged[number] = publish(http, f"k{number}", many(number)).json()["publication"]
        with disk.fails(fault):
            for number in range(10, 13):
                said = publish(http, f"k{number}", many(number))
                assert said.status_code == 503, said.text
                assert FAULTS[fault] in said.text
            health = http.get("/ready")
            assert (health.status_code, FAULTS[fault] in health.text) == (503, True)
            assert rows(http) == students(acknowledged)
        until(lambda: http.get("/ready").is_success, 60)
        acknowledged[20] = publish(http, "k20", many(20)).json()["publication"]
        broker.kill()
        broker.start()
        for number, at in acknowledged.items():
            assert publish(http, f"k{number}", many(number)).json() == {"publication": at, "repeated": True}
        assert rows(http) == students(acknowledged)
        assert "Traceback" not in broker.said()


def write(web, number):
    body = "".join(f'<urn:s{number}> <urn:p> "{value}" . ' for value in range(50))
    headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": UPDATE}
    return web.patch("/one", content=f"INSERT DATA {{ {body} }}", headers=headers)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fragments_server_says_what_its_disk_has_and_loses_nothing(tmp_path, fault, monkeypatch):
    folder = tmp_path / "store"
    folder.mkdir()
    (tmp_path / "one.nt").write_text("<urn:a> <urn:b> <urn:c> .\n")
    disk = FailingDisk(folder, tmp_path)
    for name, value in disk.environment.items():
        monkeypatch.setenv(name, value)
    words = [str(tmp_path / "one.nt"), "--store", str(folder), "--token-file", tokens(tmp_path, TOKEN)]
    written = []
    with process(words) as (_, port), httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=300) as web:
        for number in range(5):
            assert write(web, number).is_success
            written.append(number)
        with disk.fails(fault):
            for number in range(10, 13):
                said = write(web, number)
                assert said.status_code == 507, said.text
                assert FAULTS[fault] in said.text
            health = web.get("/ready")
            assert (health.status_code, FAULTS[fault] in health.text) == (503, True), health.text
        until(lambda: web.get("/ready").is_success, 60)
        assert write(web, 20).is_success
        written.append(20)
    store = DiskStore(folder / "one")
    for number in range(30):
        count = store.count((f"<urn:s{number}>", "<urn:p>", None, None))
        assert count == (50 if number in written else 0), number
    store.close()


@pytest.fixture(params=FAULTS)
def failing(request, tmp_path, monkeypatch):
    """A folder for a state, what its disk says while it fails, and a block in which it does."""
    folder = tmp_path / "state"
    folder.mkdir()
    disk = FailingDisk(folder, tmp_path)
    for name, value in disk.environment.items():
        monkeypatch.setenv(name, value)
    return folder, FAULTS[request.param], lambda: disk.fails(request.param)


def test_a_durable_query_says_what_its_disk_has_and_goes_on(failing, tmp_path):
    state, sentence, fails = failing
    elements, log, out = kq.readings(Random(1), 600), tmp_path / "readings.jsonl", tmp_path / "out.jsonl"
    expected = kq.due(kq.TEXTS[6], elements)
    lines = [encode_element(element) for element in elements]
    (tmp_path / "q.rq").write_text(kq.TEXTS[6])
    words = ["query", str(tmp_path / "q.rq"), "--stream", f"{log}?follow=1", "--state", str(state), "--to", str(out)]
    log.write_bytes(b"".join(lines[:200]))
    out.touch()
    with kq.running(words, tmp_path / "log") as query:
        kq.until(lambda: out.read_bytes().count(b"\n") > 3, tmp_path / "log")
        with fails(), log.open("ab") as file:
            file.write(b"".join(lines[200:400]))
            file.flush()
            assert query.wait(60) == 2
    assert sentence in (tmp_path / "log").read_text()
    with kq.running(words, tmp_path / "log"), log.open("ab") as file:
        file.write(b"".join(lines[400:]))
        file.flush()
        kq.until(lambda: out.read_bytes().count(b"\n") >= len(expected) - 1, tmp_path / "log")
    kq.compare(out.read_bytes().splitlines(), expected)
    assert "Traceback" not in (tmp_path / "log").read_text()


def test_a_durable_service_says_what_its_disk_has_and_loses_nothing(failing, tmp_path):
    state, sentence, fails = failing
    elements, port = kq.readings(Random(2), 300), free_port()
    expected = kq.due(kq.TEXTS[6], elements)
    words = ["engine", "serve", "live", "--port", str(port), "--state", str(state)]

    def post(web: httpx.Client, begin: int) -> httpx.Response:
        body = b"".join(map(encode_element, elements[begin : begin + 50]))
        headers = {"Content-Type": "application/x-ndjson", "Idempotency-Key": str(begin)}
        return web.post(f"/streams/{kq.IN}", content=body, headers=headers)

    def ready(web: httpx.Client) -> None:
        until(lambda: answered(lambda: web.get("/ready").is_success), 60)

    with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=300) as web:
        with kq.running(words, tmp_path / "log"):
            ready(web)
            assert web.post("/queries", content=kq.TEXTS[6]).is_success
            assert post(web, 0).is_success
            with fails():
                refused = [post(web, begin) for begin in (50, 50)]
                assert {item.status_code for item in refused} == {503}
                assert all(sentence in item.text for item in refused)
                health = web.get("/ready")
                assert (health.status_code, sentence in health.text) == (503, True)
            ready(web)
            for begin in range(50, 150, 50):
                assert post(web, begin).is_success
        with kq.running(words, tmp_path / "log"):
            ready(web)
            for begin in range(100, 300, 50):
                assert post(web, begin).is_success
            messages: list[kq.Told] = []
            with web.stream("GET", "/queries/q1/answers", params={"after": 0}) as stream:
                for line in stream.iter_lines():
                    messages += [kq.Told.of(line[5:].encode())] if line.startswith("data:") else []
                    if len(messages) >= len(expected) - 1:
                        break
    assert messages == expected[: len(messages)]
    assert "Traceback" not in (tmp_path / "log").read_text()


def answered(ask):
    """What is asked of a server that may not listen yet."""
    try:
        return ask()
    except httpx.TransportError:
        return False
