"""Disks that lose what they were given (fsync), or become read-only: nothing acknowledged is lost, and it is said."""

import os

import httpx
import pytest

from streamgauge.servers.fragments.store.disk import DiskStore
from tests.prove.failing_disk import FailingDisk
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
