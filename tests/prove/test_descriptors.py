"""Servers that run out of descriptors say so in a sentence, lose nothing, and go on once there are some again."""

import resource
import time
from contextlib import suppress

import pytest

from tests.boundaries.sockets import BOUNDARIES, HERE, SHOWN, ask, connect, request, started, status

pytestmark = pytest.mark.prove

SPARE = 12
"""Descriptors that a server has left."""


@pytest.mark.parametrize("name", BOUNDARIES)
def test_a_server_without_descriptors_goes_on_when_there_are_some(name, tmp_path):
    boundary = BOUNDARIES[name]
    with started(boundary, tmp_path) as running:
        port = running.ports[0]
        boundary.prepare(port)
        most = running.process.num_fds() + SPARE
        running.process.rlimit(resource.RLIMIT_NOFILE, (most, most))
        crowd = []
        for _ in range(4 * SPARE):
            with suppress(OSError):
                crowd.append(connect(port))
                crowd[-1].sendall(b"GET / HTTP/1.1\r\n")
        until = time.monotonic() + 60
        while "all descriptors are in use (raise ulimit -n)" not in running.text and running.boundary.stays:
            assert time.monotonic() < until, running.text
            time.sleep(0.1)
        for connection in crowd:
            connection.close()
        while status(ask(port, request("GET", boundary.reads, HERE, SHOWN, "Connection: close"))) != 200:
            assert time.monotonic() < until, running.text
            time.sleep(0.2)
        assert running.process.is_running()
        assert "Traceback" not in running.text, running.text
        assert len(running.text.splitlines()) < 20, running.text
