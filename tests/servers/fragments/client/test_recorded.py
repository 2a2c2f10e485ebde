"""Recorded responses of Triple Pattern Fragments servers: ours of @ldf/server, and the public test suite for clients.

The public one is comunica/manifest-ldf-tests: STREAMGAUGE_LDF_TESTS names its folder ``sparql``. Only fragments that
some plan of another client asked for are there: a plan of ours that wants another one is skipped, not failed.
"""

import asyncio
import os
from hashlib import sha1
from pathlib import Path
from urllib.parse import unquote

import httpx
import pyoxigraph as ox
import pytest

from streamgauge.servers.fragments.client.sources import open_source
from tests.servers.fragments.client.answering import answer, rows
from tests.servers.fragments.client.fakes import reply, web

OWN = Path(__file__).parent / "recorded"
"""In the form of the public suite."""

NAMED = os.environ.get("STREAMGAUGE_LDF_TESTS")
FOLDERS = [OWN, *([Path(NAMED)] if NAMED else [])]
MF = "http://www.w3.org/2001/sw/DataAccess/tests/test-manifest#"
ET = "https://comunica.github.io/ontology-query-testing/ontology-query-testing.ttl#"
QT = "http://www.w3.org/2001/sw/DataAccess/tests/test-query#"
PREFIXES = {
    "rdf": "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
    "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
    "foaf": "http://xmlns.com/foaf/0.1/",
    "dc": "http://purl.org/dc/terms/",
    "dbpedia": "http://dbpedia.org/resource/",
    "dbpedia-owl": "http://dbpedia.org/ontology/",
    "dbpprop": "http://dbpedia.org/property/",
}
ENTRIES = f"""
    PREFIX mf: <{MF}> PREFIX et: <{ET}> PREFIX qt: <{QT}> PREFIX rdf: <{PREFIXES["rdf"]}>
    SELECT ?entry ?query ?folder ?result (GROUP_CONCAT(STR(?source); SEPARATOR=" ") AS ?sources) {{
      ?entry mf:action [ qt:query ?query ; et:mockFolder ?folder ] ; mf:result ?result ; et:dataSources ?list .
      ?list rdf:rest*/rdf:first [ et:source ?source ; et:sourceType et:TPF ] .
      FILTER NOT EXISTS {{ ?list rdf:rest*/rdf:first [ et:sourceType ?other ] FILTER(?other != et:TPF) }}
    }} GROUP BY ?entry ?query ?folder ?result"""

Entry = tuple[str, str, str, tuple[str, ...]]
"""Query, folder and result below the manifest's folder; sources."""


def entries(suite: Path) -> dict[str, Entry]:
    """The tests of a suite that have only sources of fragments."""
    manifest = suite / "sparql-manifest.ttl"
    store = ox.Store()
    store.load(manifest.read_bytes(), format=ox.RdfFormat.TURTLE, base_iri="http://m.example/")
    rows = store.query(ENTRIES)
    assert isinstance(rows, ox.QuerySolutions)
    results = {}
    for row in rows:
        parts = (row[name].value for name in ("query", "folder", "result"))
        query, folder, result = (part.removeprefix("http://m.example/") for part in parts)
        results[folder] = (query, folder, result, tuple(row["sources"].value.split()))
    return results


def recorded(folder: Path, missing: list[str]):
    """What was recorded of an address."""

    def handler(request: httpx.Request) -> httpx.Response:
        name = sha1(unquote(str(request.url)).encode()).hexdigest()
        file = folder / name
        if not file.is_file():
            missing.append(str(request.url))
            return reply(404, b"not recorded", kind="text/plain")
        *head, body = file.read_bytes().split(b"\n", 3)
        return reply(200, body, kind=head[2].decode().partition(": ")[2])

    return handler


def answered(text: str, sources: tuple[str, ...], handler):
    """A query over recorded sources."""

    async def run():
        client = web(handler)
        with client.round():
            return await answer(text, [await open_source(source, client) for source in sources], client)

    return asyncio.run(run())


@pytest.mark.parametrize(
    ("suite", "name"), [pytest.param(suite, name, id=name) for suite in FOLDERS for name in sorted(entries(suite))]
)
def test_recorded_fragments_give_the_recorded_answer(suite: Path, name: str) -> None:
    query, folder, result, sources = entries(suite)[name]
    header = "".join(f"PREFIX {prefix}: <{iri}>\n" for prefix, iri in PREFIXES.items())
    missing: list[str] = []
    try:
        got = answered(header + (suite / query).read_text(), sources, recorded(suite / folder, missing))
    except Exception:
        if missing and suite != OWN:
            pytest.skip(f"a fragment of our plan is not recorded: {missing[0]}")
        raise
    assert not (missing and suite == OWN), "python -m tests.servers.fragments.client.recording records them"
    expected = ox.parse_query_results((suite / result).read_bytes(), format=ox.QueryResultsFormat.JSON)
    assert rows(got) == rows(expected)
