"""ldes-client 0.3.0 (npm) beside ours on the same TREE collections: paged, nested, with shapes; the same members.

``ldes`` in the folder STREAMGAUGE_LDF_HOME is where ldes-client@0.3.0 was installed by npm; else this is skipped.
"""

import asyncio
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pyoxigraph as ox
import pytest

from streamgauge.model.algebra import Var
from streamgauge.servers.fragments import QuadPattern
from streamgauge.servers.fragments.client.caching_client import CachingHttpClient
from streamgauge.servers.fragments.client.sources import open_source
from streamgauge.servers.fragments.client.sources.tree import TreeSource
from streamgauge.servers.fragments.client.transport import guarded_client
from streamgauge.servers.fragments.live_queries.watch import steady_clock

pytestmark = pytest.mark.server

HEAD = """@prefix tree: <https://w3id.org/tree#> . @prefix ldes: <https://w3id.org/ldes#> . @prefix : <urn:e:> .
@prefix sh: <http://www.w3.org/ns/shacl#> . @prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
@prefix dct: <http://purl.org/dc/terms/> . <stream> a ldes:EventStream ; tree:view <root> . """
TIMED = "<stream> ldes:timestampPath dct:created ; ldes:versionOfPath dct:isVersionOf . "
SHAPE = """<stream> tree:shape [ a sh:NodeShape ; sh:property [ sh:path :by ; sh:node [ a sh:NodeShape ;
  sh:property [ sh:path :name ] ] ] ; sh:property [ sh:path :v ] ] . """


def member(n: int) -> str:
    return (
        f'<stream> tree:member :m{n} . :m{n} :v {n} ; :by :p{n % 3} ; :at [ :lat {n} ; :of [ :deep "{n}" ] ] .'
        f':p{n % 3} :name "P{n % 3}" ; :secret "s" . '
    )


def page(*members: int, to: tuple[str, ...] = (), more: str = "") -> str:
    relations = " ".join(f"<> tree:relation [ a tree:Relation ; tree:node <{name}> ] ." for name in to)
    return f"{HEAD}{more}<> a tree:Node . {relations} {' '.join(map(member, members))}"


COLLECTIONS = {
    "one page": {"root": page(*range(5))},
    "paged": {"root": page(0, 1, to=("a",)), "a": page(2, 3, to=("b",)), "b": page(4, 5)},
    "nested": {
        "root": page(to=("a", "b")),
        "a": page(0, to=("c", "d")),
        "b": page(1, to=("e",)),
        "c": page(2, 3),
        "d": page(4, to=("e",)),
        "e": page(5),
    },
    "a circle": {"root": page(0, to=("a",)), "a": page(1, to=("root",))},
    "a shape, paged": {"root": page(0, 1, to=("a",), more=SHAPE), "a": page(2, 3, more=SHAPE)},
}


@contextmanager
def serving(pages: dict[str, str]) -> Iterator[str]:
    class Pages(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            text = pages.get(self.path.strip("/"))
            body = (text or "").encode()
            self.send_response(200 if text else 404)
            self.send_header("Content-Type", "text/turtle")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Pages)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def theirs(address: str) -> str:
    home = os.environ.get("STREAMGAUGE_LDF_HOME")
    program = Path(home or "") / "ldes/node_modules/ldes-client/dist/bin/cli.js"
    if home is None or not program.is_file() or shutil.which("node") is None:
        pytest.skip("ldes-client@0.3.0 is not in STREAMGAUGE_LDF_HOME/ldes: npm install it there to run this")
    done = subprocess.run(["node", str(program), f"{address}/root"], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def ours(address: str) -> set[Any]:
    async def fetch() -> Any:
        web = CachingHttpClient(guarded_client(), steady_clock(), asyncio.sleep)
        source = await open_source(f"{address}/root", web)
        assert isinstance(source, TreeSource)
        return await source.fetch(QuadPattern(Var("s"), Var("p"), Var("o")))

    return {quad[:3] for quad in asyncio.run(fetch()).quads}


def canonical(triples: Any) -> ox.Dataset:
    dataset = ox.Dataset(triples)
    dataset.canonicalize(ox.CanonicalizationAlgorithm.UNSTABLE)
    return dataset


@pytest.mark.slow
@pytest.mark.parametrize("name", COLLECTIONS)
def test_members_are_those_of_ldes_client(name: str) -> None:
    with serving(COLLECTIONS[name]) as address:
        said, result = theirs(address), ours(address)
    lines = "".join(f"{' '.join(triple)} .\n" for triple in result)
    members = ox.parse(said, format=ox.RdfFormat.TURTLE)
    mine = ox.parse(lines, format=ox.RdfFormat.N_TRIPLES)
    assert result
    assert canonical(mine) == canonical(members)
