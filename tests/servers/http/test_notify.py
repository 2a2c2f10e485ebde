"""Messages to a service manager, at a socket as systemd has it."""

import os
import signal
import socket
import subprocess
import sys

import pytest

from streamgauge.servers.http.notify import ServiceManager


@pytest.fixture
def manager(tmp_path):
    """A manager's socket, and the messages that came."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind(str(tmp_path / "notify"))
        listener.settimeout(60)
        yield str(tmp_path / "notify"), lambda: listener.recv(4096).decode()


@pytest.mark.server
def test_signs_of_life_are_sent_when_they_are_due(manager):
    path, message = manager
    now = 0.0
    service = ServiceManager({"NOTIFY_SOCKET": path, "WATCHDOG_USEC": "30000000"}, lambda: now)
    sent = []
    for now in (0.0, 1.0, 9.9, 10.0, 19.0, 25.0):
        service.beat()
        sent.append(now)
    service.tell("STATUS=over", "STOPPING=1")
    assert [message() for _ in range(4)] == ["WATCHDOG=1"] * 3 + ["STATUS=over\nSTOPPING=1"]


@pytest.mark.parametrize(
    ("environment", "tries"),
    [
        ({}, 0),
        ({"WATCHDOG_USEC": "1"}, 0),
        ({"NOTIFY_SOCKET": "/nowhere/at/all", "WATCHDOG_USEC": "1"}, 2),
        ({"NOTIFY_SOCKET": "@streamgauge-nobody", "WATCHDOG_USEC": "x"}, 1),
    ],
)
def test_without_a_manager_that_listens_nothing_fails(environment, tries, monkeypatch):
    opened, plain = [], socket.socket
    monkeypatch.setattr(socket, "socket", lambda *kind: opened.append(kind) or plain(*kind))
    service = ServiceManager(environment)
    service.tell("READY=1")
    service.beat()
    assert len(opened) == tries


@pytest.mark.server
def test_the_watchdog_of_another_process_is_not_fed(manager):
    path, message = manager
    service = ServiceManager({"NOTIFY_SOCKET": path, "WATCHDOG_USEC": "1", "WATCHDOG_PID": str(os.getppid())})
    service.beat()
    service.tell("READY=1")
    assert message() == "READY=1"


@pytest.mark.server
def test_a_server_says_that_it_is_ready_lives_and_stops(manager):
    path, message = manager
    command = [sys.executable, "-m", "streamgauge", "engine", "serve", "live", "--port", "0"]
    environment = {**os.environ, "NOTIFY_SOCKET": path, "WATCHDOG_USEC": "3000000"}
    with subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL) as server:
        try:
            assert [message(), message()] == ["READY=1", "WATCHDOG=1"]
            server.send_signal(signal.SIGTERM)
            while (last := message()) == "WATCHDOG=1":
                pass
            assert last == "STOPPING=1"
            assert server.wait(60) == 143
        finally:
            server.kill()
