"""The React page of examples/react in a real browser: live, and again after the service was away."""

import os
import shutil
import subprocess
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from streamgauge.engines import load
from streamgauge.formats.lines import Advance
from streamgauge.model.element import StreamElement
from streamgauge.servers.http.access import read_origins
from streamgauge.servers.http.server import Serving
from streamgauge.servers.queries.http import application
from streamgauge.servers.queries.registry import Queries
from streamgauge.servers.queries.requests import QueryRegistration
from tests.browser.driving import resize, show, text, until

ROOT = Path(__file__).resolve().parents[2]
MODULES = Path(os.environ.get("STREAMGAUGE_REACT_HOME", "")) / "node_modules"
READINGS, OF = "http://home.example/readings", "http://home.example/readings#"
TOKEN = "a-token-that-nobody-guesses"

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(not (MODULES / "react").is_dir(), reason="React is not here"),
]


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Nobody reads it."""


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The page, built as its package says, on a server that is not the service."""
    folder = tmp_path_factory.mktemp("react")
    shutil.copytree(ROOT / "examples" / "react", folder / "examples" / "react")
    shutil.copytree(ROOT / "clients", folder / "clients")
    home = folder / "examples" / "react"
    (home / "node_modules").symlink_to(MODULES)
    subprocess.run(["npm", "run", "--silent", "build"], cwd=home, check=True)
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(home))) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://localhost:{server.server_address[1]}"
        server.shutdown()
        thread.join()


class Service:
    """A service with the query of examples/operations, which lets the page in."""

    def __init__(self, origin: str, port: int = 0) -> None:
        self._queries = Queries(load, ("live",), clock=lambda: 0)
        query = (ROOT / "examples" / "operations" / "alerts" / "warm.rq").read_text()
        self._queries.register(QueryRegistration(query), name="warm")
        face = application(self._queries, [TOKEN], origins=read_origins([origin], tokens=True))
        messages: list[str] = []
        self._server = Serving(face, "127.0.0.1", port, self._queries.leave, messages.append)
        self._thread = threading.Thread(target=self._server.run)
        self._thread.start()
        until(lambda: messages)
        self.url = messages[0].rstrip("/")
        self.port = int(self.url.rpartition(":")[2])

    def publish(self, minute: int, room: str, celsius: int) -> None:
        """A reading; a minute later its window closes."""
        reading = f"<urn:{room}{minute}>"
        triples = ((reading, f"<{OF}room>", f'"{room}"'), (reading, f"<{OF}celsius>", _number(celsius)))
        self._queries.publish(READINGS, [StreamElement(READINGS, minute * 60_000, 0, triples)])
        self._queries.publish(READINGS, [Advance((minute + 1) * 60_000)])

    def stop(self) -> None:
        self._server.stop()
        self._thread.join(60)


def _number(value: int) -> str:
    return f'"{value}"^^<http://www.w3.org/2001/XMLSchema#integer>'


def cells(browser: Any) -> list[str]:
    return [cell.text for cell in browser.find_elements("css selector", "td")]


def test_the_page_shows_answers_and_goes_on(browser: Any, page: str) -> None:
    service = Service(page)
    try:
        show(browser, f"{page}/?{urlencode({'at': service.url, 'token': TOKEN})}")
        until(lambda: text(browser, "[role=status]") == "connected")
        service.publish(100, "kitchen", 31)
        until(lambda: cells(browser) == ["kitchen", "31"])
        for width in (390, 1440):
            resize(browser, width, "light", 900)
            assert browser.execute_script("return document.documentElement.scrollWidth <= innerWidth")
    finally:
        service.stop()
    until(lambda: text(browser, "[role=status]") == "away")
    service = Service(page, service.port)
    try:
        until(lambda: text(browser, "[role=status]") == "connected")
        service.publish(200, "attic", 35)
        until(lambda: cells(browser) == ["attic", "35"])
    finally:
        browser.get("about:blank")
        service.stop()
