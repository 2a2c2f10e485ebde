"""A disk that fills: what was acknowledged is durable, nothing else is; with room the broker goes on from there."""

import os
import subprocess

import httpx
import pytest

from tests.servers.broker.process import Process, until
from tests.servers.broker.world import BASE, RULES, answered, by_updates, select, student

pytestmark = pytest.mark.server

TURTLE = "text/turtle"


@pytest.fixture
def small(tmp_path):
    """A file system of one megabyte, and what gives it more."""
    if os.geteuid() != 0:
        pytest.skip("a small file system needs root to be mounted")
    folder = tmp_path / "small"
    folder.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)], check=False).returncode:
        pytest.skip("a small file system cannot be mounted here")
    yield folder, lambda: subprocess.run(["mount", "-o", "remount,size=100m", str(folder)], check=True)
    subprocess.run(["umount", "-l", str(folder)], check=True)


def publish(http, key, graph):
    content = "".join(f"{' '.join(triple)} .\n" for triple in graph)
    return http.post("/publish", content=content, headers={"Content-Type": TURTLE, "Idempotency-Key": key})


def many(n):
    return [triple for index in range(20 * n, 20 * n + 20) for triple in student(index)]


def test_a_full_disk_is_said_and_nothing_acknowledged_is_lost(small):
    folder, widen = small
    acknowledged = {}
    with Process(folder) as broker, httpx.Client(base_url=broker.url, timeout=300) as http:
        assert publish(http, "base", BASE).is_success
        assert http.put("/channels/students", content=select("?x a :Student")).is_success
        assert http.put("/channels/students/subscribers/me").is_success
        for n in range(200):
            said = publish(http, f"k{n}", many(n))
            if not said.is_success:
                break
            acknowledged[n] = said.json()["publication"]
        assert (said.status_code, "could not be written: the disk is full" in said.json()["error"]) == (503, True)
        assert 0 < len(acknowledged) == n
        ready = http.get("/ready")
        assert (ready.status_code, ready.json()["status"]) == (503, "not ready")
        assert "the disk is full (ENOSPC)" in ready.json()["fault"]
        assert http.get("/health").json() == {"status": "up"}, "a restart would not help"
        assert rows(http) == students(acknowledged)
        again = publish(http, "again", many(n))
        assert (again.status_code, rows(http)) == (503, students(acknowledged))
        widen()
        until(lambda: http.get("/ready").is_success, 30)
        assert publish(http, "later", many(300)).json() == {"publication": len(acknowledged) + 2, "repeated": False}
        acknowledged[300] = len(acknowledged) + 2
        broker.kill()
        broker.start()
        assert http.get("/health").is_success
        for number, at in acknowledged.items():
            key = "later" if number == 300 else f"k{number}"
            assert publish(http, key, many(number)).json() == {"publication": at, "repeated": True}
        facts = [*BASE, *(triple for number in acknowledged for triple in many(number))]
        assert rows(http) == students(acknowledged)
        assert publish(http, f"k{n}", many(n)).json() == {"publication": len(acknowledged) + 2, "repeated": False}
        assert rows(http) == answered(by_updates(RULES, [*facts, *many(n)]))["students"]


def students(numbers):
    return {triple[:1] for number in numbers for triple in many(number)}


def rows(http):
    document = http.get("/channels/students/rows").json()["results"]["bindings"]
    return {(f"<{row['x']['value']}>",) for row in document}
