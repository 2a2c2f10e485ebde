"""The example page, of another origin than the broker, in a real browser: let in it hears, without it is refused."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from itertools import product
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import httpx
import pytest

from streamgauge.servers.broker.access import Access, Grant
from streamgauge.servers.http.access import read_origins
from tests.browser.driving import CONTRAST, resize, show, text, until
from tests.servers.broker.served import GRAPH, OTHER, TURTLE, serving
from tests.servers.broker.world import broker, select

pytestmark = pytest.mark.browser

PAGES = Path(__file__).resolve().parents[2] / "examples" / "pages"
TOKEN = "a-token-that-nobody-guesses"


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Nobody reads it."""


@pytest.fixture(scope="module")
def origin(browser: Any) -> Iterator[str]:
    """A server of the pages, which is not the broker."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(PAGES))) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://localhost:{server.server_address[1]}"
        server.shutdown()
        thread.join()


@contextmanager
def opened(browser: Any, origin: str, allowed: list[str], tokens: tuple[str, ...] = ()) -> Iterator[httpx.Client]:
    """The page, subscribed to the channel of a broker that lets these origins in; a client of that broker."""
    made = broker()
    made.create_channel("people", select("?x a :Student"))
    access = Access([Grant(token) for token in tokens])
    with serving(made, access, origins=read_origins(allowed, bool(tokens))) as (url, _):
        asked = {"at": url, "channel": "people", **({"token": tokens[0]} if tokens else {})}
        show(browser, f"{origin}/subscribe.html?{urlencode(asked)}")
        headers = {"Authorization": f"Bearer {tokens[0]}"} if tokens else {}
        with httpx.Client(base_url=url, headers=headers, timeout=300) as http:
            yield http
        browser.get("about:blank")


@pytest.mark.parametrize("every", [False, True])
@pytest.mark.parametrize("tokens", [(), (TOKEN,)])
def test_a_page_of_an_origin_that_is_let_in_hears_of_changes(
    browser: Any, origin: str, tokens: tuple[str, ...], every: bool
) -> None:
    with opened(browser, origin, ["*" if every else origin], tokens) as http:
        until(lambda: text(browser, "#said") == "Listening.")
        http.post("/publish", content=GRAPH, headers=TURTLE).raise_for_status()
        until(lambda: text(browser, "#said") == "Notification 1, caused by publication 1.")
        assert text(browser, "#rows") == "urn:t:s1"
        http.post("/publish", content=OTHER, headers=TURTLE).raise_for_status()
        http.post("/delete", content=GRAPH, headers=TURTLE).raise_for_status()
        until(lambda: text(browser, "#rows") == "urn:t:s2")
        http.delete("/channels/people").raise_for_status()
        until(lambda: text(browser, "#said") == "The end: the channel was deleted.")


@pytest.mark.parametrize("allowed", [[], ["http://localhost:1"], ["https://localhost"]])
def test_a_page_of_an_origin_that_is_not_let_in_is_refused(browser: Any, origin: str, allowed: list[str]) -> None:
    browser.get("about:blank")
    browser.get_log("browser")
    with opened(browser, origin, allowed) as http:
        until(lambda: text(browser, "#said").startswith("Refused"))
        http.post("/publish", content=GRAPH, headers=TURTLE).raise_for_status()
        outcome = browser.execute_async_script(
            "const [address, done] = arguments, source = new EventSource(address);"
            "source.onmessage = () => done('heard'); source.onopen = () => done('open');"
            "source.onerror = () => done(source.readyState === EventSource.CLOSED ? 'closed' : 'again')",
            f"{http.base_url}/channels/people/notifications?after=0",
        )
        assert (outcome, text(browser, "#rows")) == ("closed", "")
    assert any("CORS" in entry["message"] for entry in browser.get_log("browser"))


def test_the_page_fits_and_can_be_read(browser: Any, origin: str) -> None:
    show(browser, f"{origin}/subscribe.html")
    for width, theme in product((1280, 360), ("light", "dark")):
        resize(browser, width, theme, 900)
        assert browser.execute_script("return document.documentElement.scrollWidth") <= width
        worst, where = browser.execute_script(CONTRAST)
        assert worst >= 4.5, (width, theme, where)
