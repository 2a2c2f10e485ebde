"""Attached sources: what they bring is published at once, in order, and waits while a source is paused."""

import time

import pytest

from streamgauge.formats.lines import encode_element
from streamgauge.servers.queries.attached import AttachedSources, AttachError
from streamgauge.servers.queries.catalogue import ConflictError
from streamgauge.servers.queries.requests import QueryRegistration
from tests.servers.queries.asks import IN, element, select, service


@pytest.fixture
def queries():
    made = service()
    yield made
    made.close("the test is over")


def until(met):
    end = time.monotonic() + 60
    while not met():
        assert time.monotonic() < end
        time.sleep(0.01)


def written(*times):
    lines = [encode_element(element(time_)).replace(b'"n":0', b'"n":%d' % time_) for time_ in times]
    return b"".join(lines)


def test_what_comes_from_a_source_is_published_at_once_and_waits_while_it_is_paused(queries, tmp_path):
    log = tmp_path / "log.jsonl"
    log.write_bytes(written(0, 1, 2))
    attached = AttachedSources(queries, lambda _url: None)
    running = queries.register(QueryRegistration(select()))
    attached.attach(IN, f"{log}?follow=1")
    until(lambda: running.elements == 3)
    attached.pause(IN)
    with log.open("ab") as file:
        file.write(written(3, 4))
    assert attached.status()[IN]["paused"]
    time.sleep(0.3)
    assert running.elements == 3
    attached.resume(IN)
    until(lambda: running.elements == 5)
    assert running.time == 4
    with pytest.raises(ConflictError, match="no source attached"):
        attached.pause("urn:other")
    attached.close()


def test_a_source_that_may_not_be_attached_is_refused_by_who_decides(queries, tmp_path):
    def refuse(url):
        raise AttachError(f"{url} is not of this folder")

    with pytest.raises(AttachError, match="not of this folder"):
        AttachedSources(queries, refuse).attach(IN, str(tmp_path))
    with pytest.raises(AttachError, match="start the service with --attach"):
        AttachedSources(queries, ["mqtt://host/"]).attach(IN, str(tmp_path))
