"""Clients that take nothing of what is sent: all together have a budget, and who takes some keeps its connection."""

import threading
from contextlib import ExitStack

import pytest

from streamgauge.servers.http import untaken
from tests.servers.fragments.pages.sockets import PLAIN, connect, serving
from tests.servers.fragments.pages.test_faults import served

pytestmark = [pytest.mark.server, pytest.mark.slow]

PAGE = PLAIN.replace(b"predicate=urn:p", b"")


def test_bytes_that_wait_for_all_clients_have_a_budget(monkeypatch):
    """Of 12 clients for each of whom 1.3 MB wait, those are left that take nothing; one that takes some gets all."""
    monkeypatch.setattr(untaken, "UNTAKEN", 3_000_000)
    monkeypatch.setattr(untaken, "STALLED_S", 0.5)
    with serving(served(10_000, 10_000)) as (server, port), ExitStack() as stack:
        for _ in range(12):
            stack.enter_context(connect(port)).sendall(PAGE.replace(b"close", b"keep-alive"))
        slow, pause, taken = stack.enter_context(connect(port)), threading.Event(), 0
        slow.sendall(PAGE)
        while part := slow.recv(200_000):
            taken += len(part)
            pause.wait(0.1)
        assert taken > 1_000_000
        for _ in range(300):
            if len(server.server_state.connections) <= 4:
                break
            pause.wait(0.1)
        assert len(server.server_state.connections) <= 4


def test_what_waits_for_one_client_alone_waits_as_long_as_any(monkeypatch):
    monkeypatch.setattr(untaken, "UNTAKEN", 1)
    monkeypatch.setattr(untaken, "STALLED_S", 0.1)
    with serving(served(10_000, 10_000)) as (_, port), connect(port) as alone:
        alone.sendall(PAGE)
        threading.Event().wait(0.6)
        taken = 0
        while part := alone.recv(200_000):
            taken += len(part)
        assert taken > 1_000_000
