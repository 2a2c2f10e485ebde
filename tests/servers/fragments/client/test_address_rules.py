"""Where requests may go: addresses, redirects, links, names that resolve to this machine."""

import asyncio
import shutil
import ssl
import subprocess
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from itertools import pairwise
from threading import Thread

import httpx
import pytest

from streamgauge.outgoing.addresses import is_private
from streamgauge.outgoing.failures import permanent_failure
from streamgauge.outgoing.guarded import PRIVATE, Guarded
from streamgauge.servers.fragments.client import LinkedDataError
from streamgauge.servers.fragments.client.sources import open_source
from streamgauge.servers.fragments.client.transport import RefusedAddressError, address_rules, guarded_client
from tests.servers.fragments.client.fakes import reply, web

PUBLIC = "https://data.example/d"
HIDDEN = (
    "127.0.0.1",
    "127.9.9.9",
    "10.1.2.3",
    "172.16.0.1",
    "192.168.1.1",
    "169.254.169.254",
    "100.64.0.1",
    "0.0.0.0",
    "224.0.0.1",
    "255.255.255.255",
    "::1",
    "::",
    "fe80::1",
    "fe80::1%eth0",
    "fd00::1",
    "ff02::1",
    "::ffff:127.0.0.1",
    "::ffff:10.0.0.1",
    "64:ff9b::7f00:1",
    "2002:7f00:1::",
)


@pytest.mark.parametrize("host", HIDDEN)
def test_addresses_that_are_not_public(host: str) -> None:
    assert is_private(host)


@pytest.mark.parametrize(
    "host", ["8.8.8.8", "2606:4700:4700::1111", "64:ff9b::808:808", "data.example", "localhost.example"]
)
def test_hosts_that_are_public_or_names(host: str) -> None:
    assert not is_private(host)


@pytest.mark.parametrize(
    ("address", "why"),
    [
        ("file:///etc/passwd", "begins with http"),
        ("ftp://data.example/d", "begins with http"),
        ("gopher://127.0.0.1:6379/_INFO", "begins with http"),
        ("javascript:alert(1)", "begins with http"),
        ("//data.example/d", "begins with http"),
        ("data", "begins with http"),
        ("", "begins with http"),
        ("http://", "begins with http"),
        ("http://user:secret@data.example/", "credentials"),
        ("http://data.example:port/", "not a web address"),
        ("http://[::1", "not a web address"),
        ("http://data.example/\x00", "not a web address"),
    ],
)
def test_what_is_no_web_address(address: str, why: str) -> None:
    with pytest.raises(RefusedAddressError, match=why) as raised:
        address_rules(address)
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize(
    "host", [*HIDDEN[:10], "[::1]", "[::ffff:127.0.0.1]", "localhost", "LOCALHOST.", "a.localhost"]
)
def test_a_public_start_does_not_lead_to_hidden_hosts(host: str) -> None:
    within = address_rules(PUBLIC)
    for lead in (within.check, lambda to: within.redirect(PUBLIC, to), lambda to: within.link(PUBLIC, to)):
        with pytest.raises(RefusedAddressError, match="is not a public host"):
            lead(f"https://{host}/x")


def test_a_hidden_start_leads_to_itself_only() -> None:
    within = address_rules("http://127.0.0.1:4000/d")
    assert within.link("http://127.0.0.1:4000/d", "?page=2") == "http://127.0.0.1:4000/d?page=2"
    for other in (
        "http://127.0.0.1:22/",
        "http://127.0.0.2:4000/",
        "http://localhost:4000/",
        "https://127.0.0.1:4000/",
    ):
        with pytest.raises(RefusedAddressError, match="is not a public host"):
            within.redirect("http://127.0.0.1:4000/d", other)


def test_links_stay_at_the_origin() -> None:
    within = address_rules(PUBLIC)
    assert within.link(PUBLIC, "/e?x=1#frag") == "https://data.example/e?x=1"
    for other in ("https://other.example/", "http://data.example/d", "https://data.example:444/d", "//other.example/d"):
        with pytest.raises(RefusedAddressError, match="another origin"):
            within.link(PUBLIC, other)


def test_allowed_hosts_may_be_anything_but_another_scheme() -> None:
    within = address_rules(PUBLIC, ["Other.Example", "10.0.0.1"])
    assert within.link(PUBLIC, "https://other.example/x")
    assert within.redirect(PUBLIC, "https://10.0.0.1/x")
    with pytest.raises(RefusedAddressError, match="https to http"):
        within.redirect(PUBLIC, "http://10.0.0.1/x")
    with pytest.raises(RefusedAddressError, match="begins with http"):
        within.link(PUBLIC, "file://other.example/x")


def leading(*locations: str, status: int = 302) -> dict[str, tuple[int, str]]:
    """By address, a redirect to the next of them."""
    return {here: (status, there) for here, there in pairwise(locations)}


def following(leads: dict[str, tuple[int, str]], start: str) -> tuple[str, list[str]]:
    """Where redirects lead, and all that was asked."""
    requests: list[str] = []

    def handler(request: httpx.Request) -> httpx.Response:
        requests.append(str(request.url))
        lead = leads.get(str(request.url))
        return reply(200, b"") if lead is None else reply(lead[0], b"", Location=lead[1])

    client = web(handler)
    response = asyncio.run(client.get(start, client.reach(start)))
    return response.address, requests


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirects_are_followed(status: int) -> None:
    leads = leading("http://a.example/x", "https://a.example/x", "https://www.a.example/x", status=status)
    assert following(leads, "http://a.example/x")[0] == "https://www.a.example/x"


def test_a_relative_redirect() -> None:
    assert following({"http://a.example/x/y": (302, "../z")}, "http://a.example/x/y")[0] == "http://a.example/z"


@pytest.mark.parametrize(
    ("location", "why"),
    [
        ("file:///etc/passwd", "not a web address"),
        ("http://169.254.169.254/latest/meta-data", "https to http"),
        ("https://169.254.169.254/latest/meta-data", "not a public host"),
        ("https://[::ffff:169.254.169.254]/", "not a public host"),
        ("https://localhost/", "not a public host"),
        ("http://data.example/d", "https to http"),
        ("https://a:b@data.example/d", "credentials"),
        ("https://data.example:99999999/", "not a web address"),
        (PUBLIC, "in a circle"),
    ],
)
def test_redirects_that_are_refused(location: str, why: str) -> None:
    with pytest.raises(LinkedDataError, match=why):
        following({PUBLIC: (302, location)}, PUBLIC)


def test_too_many_redirects() -> None:
    leads = {f"https://a.example/{n}": (302, f"/{n + 1}") for n in range(100)}
    with pytest.raises(LinkedDataError, match="more than 5 times"):
        following(leads, "https://a.example/0")


def test_opening_says_why_it_was_refused() -> None:
    client = web(lambda request: reply(302, b"", Location="https://192.168.0.1/"))
    with pytest.raises(RefusedAddressError, match=r"192\.168\.0\.1 is not a public host: allow it by name"):
        asyncio.run(open_source(PUBLIC, client))
    assert client.counters.requests == 1


class Recording(httpx.AsyncBaseTransport):
    """Where connections go."""

    def __init__(self, bad: tuple[str, ...] = ()) -> None:
        self.went, self.bad = [], bad

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.went.append((request.url.host, request.headers["host"], request.extensions.get("sni_hostname")))
        if request.url.host in self.bad:
            raise httpx.ConnectError("unreachable")
        return httpx.Response(200)


def guarded(addresses: list[str], private: bool = False, bad: tuple[str, ...] = ()) -> Recording:
    """What was connected to for a name that resolves to these addresses."""
    inner = Recording(bad)

    async def resolving(host: str, port: int) -> list[str]:
        assert (host, port) == ("data.example", 443)
        return addresses

    async def run() -> None:
        async with httpx.AsyncClient(
            transport=Guarded(RefusedAddressError, resolving, transport=lambda: inner)
        ) as client:
            await client.get(PUBLIC, extensions={PRIVATE: private})

    asyncio.run(run())
    return inner


def test_the_address_that_was_looked_at_is_connected_to() -> None:
    assert guarded(["93.184.216.34"]).went == [("93.184.216.34", "data.example", "data.example")]


def test_the_next_address_is_tried() -> None:
    assert [host for host, *_ in guarded(["93.184.216.34", "8.8.8.8"], bad=("93.184.216.34",)).went] == [
        "93.184.216.34",
        "8.8.8.8",
    ]


@pytest.mark.parametrize("addresses", [["127.0.0.1"], ["93.184.216.34", "10.0.0.1"], ["::ffff:10.0.0.1"]])
def test_a_name_that_resolves_to_a_hidden_address_is_refused(addresses: list[str]) -> None:
    with pytest.raises(
        RefusedAddressError, match=r"data\.example is at .*, which is not public: allow the host by name"
    ):
        guarded(addresses)
    assert guarded(addresses, private=True).went[0][1] == "data.example"


class Named(BaseHTTPRequestHandler):
    """Says under which name it was asked."""

    def do_GET(self) -> None:
        body = self.headers["Host"].encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *said: object) -> None:
        """Nothing."""


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[int, ssl.SSLContext]]:
    """The port of a server on this machine with a certificate of data.example, and who trusts that."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not here to make a certificate")
    key, certificate = (tmp_path_factory.mktemp("tls") / name for name in ("key.pem", "certificate.pem"))
    names = ["-subj", "/CN=data.example", "-addext", "subjectAltName=DNS:data.example"]
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", *names]
    subprocess.run([*made, "-keyout", str(key), "-out", str(certificate)], check=True, capture_output=True)
    server, context = HTTPServer(("127.0.0.1", 0), Named), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server.server_port, ssl.create_default_context(cafile=certificate)
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.mark.server
def test_certificates_are_of_the_name_not_of_the_address(secure: tuple[int, ssl.SSLContext]) -> None:
    port, trusting = secure

    async def here(host: str, port: int) -> list[str]:
        return ["127.0.0.1"]

    async def run() -> None:
        transport = Guarded(RefusedAddressError, here, transport=lambda: httpx.AsyncHTTPTransport(verify=trusting))
        async with httpx.AsyncClient(transport=transport) as client:
            private = {PRIVATE: True}
            response = await client.get(f"https://data.example:{port}/", extensions=private)
            assert response.text == f"data.example:{port}"
            with pytest.raises(httpx.ConnectError, match="not valid for 'other"):
                await client.get(f"https://other.example:{port}/", extensions=private)

    asyncio.run(run())


@pytest.mark.server
def test_what_tls_refuses_is_known_as_what_no_try_mends(secure: tuple[int, ssl.SSLContext]) -> None:
    port, _ = secure
    plain = HTTPServer(("127.0.0.1", 0), Named)
    thread = Thread(target=plain.serve_forever, daemon=True)
    thread.start()

    async def why(address: str) -> str:
        async with httpx.AsyncClient() as client:
            with pytest.raises((httpx.HTTPError, httpx.InvalidURL)) as error:
                await client.get(address)
        return permanent_failure(error.value)

    assert "its certificate is not trusted: self-signed certificate" in asyncio.run(why(f"https://127.0.0.1:{port}/"))
    assert "no TLS is spoken there" in asyncio.run(why(f"https://127.0.0.1:{plain.server_port}/"))
    assert "not a web address" in asyncio.run(why("gopher://127.0.0.1/"))
    plain.shutdown()
    plain.server_close()
    thread.join()
    assert asyncio.run(why(f"http://127.0.0.1:{plain.server_port}/")) == ""


def test_a_name_that_is_not_found() -> None:
    with pytest.raises(httpx.ConnectError, match="has no address"):
        guarded([])


def test_the_guarded_client_keeps_no_cookies_and_no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
    client = guarded_client()
    client.cookies.extract_cookies(
        httpx.Response(200, headers={"set-cookie": "a=b"}, request=httpx.Request("GET", PUBLIC))
    )
    assert not list(client.cookies.jar)
    assert not client._mounts
    asyncio.run(client.aclose())
