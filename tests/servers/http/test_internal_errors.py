"""An error of the server's own is a 500 that the server logs, never the client's mistake, whatever its class."""

import asyncio

import httpx
import pytest

from streamgauge.formats.manifest import TableError
from streamgauge.servers.broker import http as broker
from streamgauge.servers.fragments.labels import Style
from streamgauge.servers.fragments.pages.dataset import DataSet
from streamgauge.servers.fragments.pages.http import application as fragments
from streamgauge.servers.fragments.store.indexed import MemoryStore
from streamgauge.servers.fragments.writes.http import WritesHandler
from streamgauge.servers.http.headers import of_host
from streamgauge.servers.queries.http import application as queries
from tests.servers.broker.world import broker as small_broker
from tests.servers.queries.asks import service

TOKEN = "a token of sixteen"
GRAPH = {"content": "<urn:a> <urn:b> <urn:c> .", "headers": {"Content-Type": "text/turtle"}}


def failing(error):
    def fail(*_arguments, **_options):
        raise error

    return fail


def of_broker(error):
    core = small_broker()
    core.create_channel = core.channel = failing(error)
    yield broker.application(core), "PUT", "/channels/c", {"content": "SELECT * { ?s ?p ?o }"}
    yield broker.application(core), "GET", "/channels/c", {}


def of_queries(error):
    core = service()
    core.register = core.query = failing(error)
    yield queries(core), "POST", "/queries", {"json": {"query": "SELECT * { ?s ?p ?o }"}}
    yield queries(core), "GET", "/queries/q1", {}
    core.close("the test is over")


def of_fragments(error):
    data = DataSet("data", MemoryStore(), Style(), lambda: 0)
    data.store.first_page = data.store.change = data.store.at = failing(error)
    app = fragments([data], [WritesHandler([TOKEN], of_host, 1000)])
    yield app, "GET", "/data", {}
    yield app, "GET", "/data?at=now", {}
    bearer = {**GRAPH["headers"], "Authorization": f"Bearer {TOKEN}"}
    yield app, "POST", "/data", {**GRAPH, "headers": bearer}


async def answer(app, method, path, **options):
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as http:
        return await http.request(method, path, **options)


@pytest.mark.parametrize("error", [ValueError("a slip"), TableError("part-0.parquet: it is cut off")], ids=repr)
@pytest.mark.parametrize("server", [of_broker, of_queries, of_fragments])
def test_what_fails_inside_is_not_the_client_s_mistake(server, error):
    for app, method, path, options in server(error):
        response = asyncio.run(answer(app, method, path, **options))
        assert response.status_code == 500, (method, path, response.text)
        assert str(error) not in response.text
