"""Pages of @ldf/server for the queries in ``recorded/``, written where ``test_recorded.py`` reads them.

``STREAMGAUGE_LDF_HOME=... python -m tests.servers.fragments.client.recording``, when our plans ask for other pages.
"""

import shutil
from hashlib import sha1
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import unquote

import httpx
import pyoxigraph as ox

from tests.servers.fragments.client.fakes import reply
from tests.servers.fragments.client.test_recorded import OWN, answered, entries
from tests.servers.fragments.pages.clients.data import quads
from tests.servers.fragments.pages.clients.test_clients import serving_theirs

ADDRESS = "http://data.example.org"


def recording(folder: Path, server: str):
    """A web that asks the server, and writes each page."""

    def handler(request: httpx.Request) -> httpx.Response:
        result = httpx.get(str(request.url).replace(ADDRESS, server), headers={"accept": request.headers["accept"]})
        kind, body = result.headers["content-type"], result.text.replace(server, ADDRESS)
        head = f"# Query: {request.url}\n# Status: {result.status_code}\n# Content-type: {kind}\n"
        folder.joinpath(sha1(unquote(str(request.url)).encode()).hexdigest()).write_text(head + body, encoding="utf-8")
        return reply(result.status_code, body.encode(), kind=kind)

    return handler


def main() -> None:
    with TemporaryDirectory() as directory:
        file = Path(directory) / "data.nq"
        flat = [ox.Quad(*quad.triple) for quad in quads()]
        store = ox.Store()
        store.extend(flat)
        for name in (file, file.with_name("triples.nq")):
            name.write_bytes(ox.serialize(flat, format=ox.RdfFormat.N_QUADS) or b"")
        with serving_theirs(file) as server:
            for query, folder, result, sources in entries(OWN).values():
                shutil.rmtree(OWN / folder, ignore_errors=True)
                (OWN / folder).mkdir()
                text = (OWN / query).read_text(encoding="utf-8")
                outcome = store.query(text)
                (OWN / result).write_bytes(outcome.serialize(format=ox.QueryResultsFormat.JSON) or b"")
                answered(text, sources, recording(OWN / folder, server))


if __name__ == "__main__":
    main()
