"""What changed in a data set since a version: patches as our server sends them, and those that are none."""

import asyncio

import pytest

from streamgauge.servers.fragments import PATCH_TYPE
from streamgauge.servers.fragments.client import FetchedChange, LinkedDataError, Response, read_patch
from streamgauge.servers.fragments.client.sources import open_source
from streamgauge.servers.fragments.client.sources.fragments import FragmentsSource
from tests.servers.fragments.client.fakes import FakeServer, quads, trains, web
from tests.servers.fragments.client.test_servers import HOST, Served


def patch(body: str, kind: str = PATCH_TYPE, version: str | None = "2") -> FetchedChange:
    return read_patch(Response(f"{HOST}/d?since=1", kind, body.encode(), 5, 9, None, None, version), 100)


def test_lines_are_quads_that_come_and_go() -> None:
    result = patch('H prev "1" .\nH id "2" .\nD <urn:a> <urn:b> "é" .\nA <urn:a> <urn:b> "01"^^<urn:t> <urn:g> .\n')
    assert result == FetchedChange(
        (("<urn:a>", "<urn:b>", '"01"^^<urn:t>', "<urn:g>"),), (("<urn:a>", "<urn:b>", '"é"', ""),), 5, 9, "2"
    )
    assert patch("") == FetchedChange((), (), 5, 9, "2")


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("A <urn:a> <urn:b> .", "is not a patch"),
        ("<urn:a> <urn:b> <urn:c> .", "a line that no patch has"),
        ("TX .", "a line that no patch has"),
        ("A <urn:a> <urn:b> <urn:c> .\n" * 101, "more than 100 lines: raise the limit `quads`"),
    ],
)
def test_what_is_no_patch(body: str, why: str) -> None:
    with pytest.raises(LinkedDataError, match=rf"^{HOST}/d\?since=1: .*{why}"):
        patch(body)


def test_a_patch_is_of_its_type_and_has_a_version() -> None:
    for kind, version in (("text/html", "2"), (PATCH_TYPE, None)):
        with pytest.raises(LinkedDataError, match="no patch of a version"):
            patch("", kind, version)


def test_our_server_says_what_changed() -> None:
    served = Served(trains(300))
    gone, come = trains(1)[0], quads('d0 delay "99"')[0]

    async def run() -> None:
        client = served.web()
        source = await open_source(f"{HOST}/d", client)
        assert isinstance(source, FragmentsSource)
        leaf = await source.pages.leaf(source.address)
        version = leaf.response.version
        assert version is not None
        served.change([gone], [(come, None)])
        requests, received = client.counters.requests, client.counters.received
        result = await source.changed(version)
        assert result is not None
        assert (result.removed, result.added) == ((gone,), (come,))
        assert result.version != version
        assert client.counters.requests == requests + 1
        assert client.counters.received - received < 1000
        assert await source.changed("never") is None

    asyncio.run(run())


def test_a_server_that_does_not_say_what_changed() -> None:
    source = asyncio.run(open_source("http://data.example/d", web(FakeServer(trains(2)))))
    assert isinstance(source, FragmentsSource)
    assert asyncio.run(source.changed("1")) is None
