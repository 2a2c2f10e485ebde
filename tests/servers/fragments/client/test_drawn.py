"""Whatever a server answers, there is an answer or a LinkedDataError that says where: nothing else."""

import asyncio
import contextlib
import warnings

import httpx
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.model.algebra import Var
from streamgauge.servers.fragments import ANYWHERE, QuadPattern
from streamgauge.servers.fragments.client import LinkedDataError
from streamgauge.servers.fragments.client.sources import open_source, solve
from streamgauge.servers.fragments.client.sources.fragments import FormTemplateError, expand
from streamgauge.servers.fragments.client.transport import ClientLimits
from tests.servers.fragments.client.fakes import HOST, SD, Chunks, FakeServer, trains, web
from tests.servers.fragments.client.test_kinds import MEMBERS, PREFIXES

LIMITS = ClientLimits(received=100_000, unpacked=200_000, pages=20, quads=2000, attempts=2, redirects=3, rows=1000)
PATTERNS = [QuadPattern(Var("s"), "<urn:delay>", Var("o")), QuadPattern(Var("s"), Var("p"), Var("q"), ANYWHERE)]
ADDRESSES = st.one_of(
    st.sampled_from(
        [
            "",
            "/",
            "//",
            "?",
            "d?page=2",
            "file:///etc/passwd",
            "http://127.0.0.1/",
            "http://[::1",
            "http://data.example:x/",
            "\x7f",
            "http://é.example/",
        ]
    ),
    st.text(max_size=30),
)
HEADERS = st.fixed_dictionaries(
    {},
    optional={
        "Date": st.one_of(st.just("Sun, 06 Nov 1994 08:49:37 GMT"), st.text(max_size=30)),
        "Expires": st.one_of(st.sampled_from(["0", "-1", "Sun, 06 Nov 99994 08:49:37 GMT"]), st.text(max_size=30)),
        "Cache-Control": st.one_of(
            st.sampled_from(["max-age=-5", "max-age=99999999999999999999", "max-age", ",,=,"]), st.text(max_size=30)
        ),
        "Age": st.one_of(st.integers().map(str), st.text(max_size=9)),
        "Retry-After": st.one_of(st.integers().map(str), st.floats().map(str), st.text(max_size=30)),
        "Last-Modified": st.text(max_size=30),
        "ETag": st.text(max_size=9),
        "Content-Length": st.one_of(st.integers().map(str), st.text(max_size=9)),
        "Content-Encoding": st.sampled_from(["gzip", "identity", "br", "deflate", "GZIP", "gzip, gzip", ""]),
        "Content-Type": st.one_of(
            st.sampled_from(
                [
                    "application/trig",
                    "text/turtle;;",
                    "application/ld+json",
                    "application/rdf+xml",
                    "text/html",
                    "application/n-quads; charset=x",
                ]
            ),
            st.text(max_size=20),
        ),
        "Location": ADDRESSES,
        "Dataset-Version": st.text(max_size=5),
    },
)
STATUS = st.one_of(
    st.just(200), st.sampled_from([200, 204, 206, 301, 302, 304, 307, 400, 404, 410, 429, 500, 503, 599])
)


def good(address: str) -> list[bytes]:
    """Bodies of every kind of source."""
    server = FakeServer(trains(30), size=40, bindings=True)
    page = b"".join(server(httpx.Request("GET", address)).stream._parts)
    description = f"[] a <{SD}Service> ; <{SD}endpoint> <{HOST}/d> .".encode()
    results = b'{"head":{"vars":["n"]},"results":{"bindings":[{"n":{"type":"literal","value":"3"}}]}}'
    return [page, (PREFIXES + MEMBERS).encode(), description, results, b'{"@id": "urn:a", "urn:b": [{"@id": "_:x"}]}']


def spoiled(body: bytes, cuts: list[tuple[int, bytes]]) -> bytes:
    """The body with bytes put in other places."""
    for place, put in cuts:
        at = place % (len(body) + 1)
        body = body[:at] + put + body[at + len(put) :]
    return body


def outcome(handler) -> int | str:
    """How many rows there are, or what was said."""

    async def run() -> int:
        client = web(handler, limits=LIMITS)
        return len((await solve(PATTERNS, [await open_source(f"{HOST}/d", client)], client)).rows)

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            return asyncio.run(run())
    except LinkedDataError as error:
        return str(error)


@given(st.data())
def test_any_answer_is_read_or_refused(data: st.DataObject) -> None:
    kind = data.draw(st.integers(0, 4))

    def handler(request: httpx.Request) -> httpx.Response:
        headers = {name: value.encode("utf-8", "surrogatepass") for name, value in data.draw(HEADERS).items()}
        cuts = data.draw(st.lists(st.tuples(st.integers(0, 10_000), st.binary(max_size=6)), max_size=3))
        body = spoiled(good(str(request.url))[kind], cuts)
        given = {b"Content-Type": b"application/trig", **{name.encode(): value for name, value in headers.items()}}
        return httpx.Response(data.draw(STATUS), headers=list(given.items()), stream=Chunks([body]))

    result = outcome(handler)
    assert isinstance(result, int) or ": " in result


@given(ADDRESSES, ADDRESSES)
def test_any_link_is_followed_or_refused(following: str, template: str) -> None:
    def escaped(text: str) -> str:
        return (
            text.encode("utf-8", "replace")
            .decode()
            .replace("\\", "\\\\")
            .replace('"', '\\"')
            .replace("\n", "\\n")
            .replace("\r", "\\r")
        )

    def alter(address: str, lines: list[str]) -> list[str]:
        forms = [line.replace(f'"{HOST}/d{{', f'"{escaped(template)}{{') for line in lines]
        return [*forms, f"<{address}> <http://www.w3.org/ns/hydra/core#next> <{escaped(following)}> ."]

    assert isinstance(outcome(FakeServer(trains(30), alter=alter)), int | str)


@given(st.text(max_size=40), st.dictionaries(st.sampled_from("abc"), st.text(max_size=5)))
def test_any_template_is_expanded_or_refused(template: str, values: dict[str, str]) -> None:
    with contextlib.suppress(FormTemplateError):
        assert isinstance(expand(template, values), str)
