"""The broker on the web keeps going, and keeps what its description says, whatever it is sent."""

from collections import Counter
from collections.abc import Callable

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from streamgauge.formats.syntaxes import SENT
from streamgauge.servers.broker.access import Access, read_grants
from streamgauge.servers.broker.limits import Limits
from tests.servers.broker.served import Client, serving
from tests.servers.broker.world import BASE, answers, broker, select

pytestmark = pytest.mark.server

TOKEN = "a-token-that-nobody-guesses"
CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
PATIENT = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
LIMITS = Limits(graph=50, rows=200, channels=5, query_text=2000, body=20_000)

UPDATES = (
    "PREFIX : <urn:t:> INSERT DATA { :s1 a :Student ; :name 'A' }",
    "PREFIX : <urn:t:> DELETE { ?x a :Student } INSERT { ?x a :Grad } WHERE { ?x :name ?n }",
    "DELETE WHERE { ?s <urn:t:p> ?o } ; INSERT DATA { _:b <urn:t:p> 1.0 }",
    "INSERT { GRAPH ?g { ?x a <urn:t:Grad> } } WHERE { GRAPH ?g { ?x <urn:t:name> ?n } }",
    "INSERT DATA { GRAPH <urn:t:g> { _:b <urn:t:p> 1 . } _:b <urn:t:p> 2 }",
)
QUERIES = (
    "SELECT ?x { ?x a <urn:t:Student> . OPTIONAL { ?x <urn:t:name> ?n } FILTER(?n > 1) }",
    "CONSTRUCT { _:b <urn:t:in> ?g } WHERE { GRAPH ?g { ?x ?p ?o } } ORDER BY DESC(?o) LIMIT 2 OFFSET 1",
    "ASK { GRAPH <urn:t:g> { ?x a <urn:t:Student> OPTIONAL { ?x <urn:t:name> ?n } } }",
    "SELECT (COUNT(*) AS ?n) { { ?x ?p ?o } UNION { ?o ?p ?x } MINUS { ?x a ?c } }",
)
GRAPHS = {
    "text/turtle": "@prefix : <urn:t:> . :s1 a :Student ; :name 'A', \"B\"@en, 1.5e3 ; :takes :c1, (1 2) .",
    "application/trig": "@prefix : <urn:t:> . :g { :s1 a :Student ; :name 'A' } :s2 a :Student . GRAPH :h { :s3 :p 1 }",
    "application/n-quads": '<urn:t:s1> <urn:t:name> "B" <urn:t:g> .',
    "application/n-triples": "<urn:t:s2> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <urn:t:Student> .",
    "application/ld+json": '{"@id": "urn:t:s", "@type": "urn:t:Student", "urn:t:p": [1, {"@list": [true, null]}]}',
    "application/rdf+xml": '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:t="urn:t:">'
    '<t:Student rdf:about="urn:t:s3"/></rdf:RDF>',
}
MEANT = (
    *(("POST", "/update", text, "application/sparql-update") for text in UPDATES),
    *(("PUT", "/channels/made", text, "application/sparql-query") for text in QUERIES),
    *(("POST", path, text, kind) for kind, text in GRAPHS.items() for path in ("/publish", "/delete")),
    ("GET", "/channels/made/rows", "", ""),
    ("DELETE", "/channels/made", "", ""),
)
PARTS = st.sampled_from([" ", "{", "}", "<", ">", "<<(", ")>>", "\\", '"', "'''", "_:", "\0", "\ud7ff", "é", ";", "."])


PATHS = ("/publish", "/delete", "/update", "/channels/made", "/channels/%00", "/channels/made/rows", "/channels/none")
KINDS = (*SENT, "application/sparql-update", "application/sparql-query", "text/plain", "")


@st.composite
def requests(draw: Callable) -> tuple[str, str, bytes, str]:
    """A request that is meant, its body with parts left out, doubled or made up; or any method, path and bytes."""
    if draw(st.integers(0, 4)) == 0:
        method, path = draw(st.sampled_from(["POST", "PUT", "DELETE", "GET"])), draw(st.sampled_from(PATHS))
        return method, path, draw(st.binary(max_size=200)), draw(st.sampled_from(KINDS))
    method, path, text, kind = draw(st.sampled_from(MEANT))
    for _ in range(draw(st.integers(0, 3))):
        at, size = draw(st.integers(0, len(text))), draw(st.integers(0, 12))
        text = text[:at] + draw(st.one_of(st.just(""), PARTS, st.just(text[at : at + size] * 3))) + text[at + size :]
    return method, path, text.encode(), kind


HEADER = st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=220)


def check(client: Client, many: int) -> Counter[int]:
    """After each request nothing has failed, and the answer of a channel is that of the facts."""

    statuses = Counter[int]()

    @settings(max_examples=many, deadline=None, suppress_health_check=PATIENT, database=None)
    @given(
        requests(),
        st.dictionaries(st.sampled_from(["Idempotency-Key", "Last-Event-ID", "Accept"]), HEADER, max_size=2),
        st.sampled_from([None, "none-of-the-tokens", TOKEN, TOKEN, TOKEN, TOKEN, TOKEN]),
    )
    def ask(request: tuple[str, str, bytes, str], headers: dict[str, str], token: str | None) -> None:
        (method, path, body, kind), before = request, client.broker.number
        access = {} if token is None else {"Authorization": f"Bearer {token}"}
        said = client(method, path, content=body, headers={"Content-Type": kind, **headers, **access})
        assert said.status_code < 500, said.text
        if said.status_code not in (404, 405) and said.status_code >= 400:
            assert said.json()["error"]
        if token != TOKEN:
            assert (said.status_code, client.broker.number) == (401, before)
        statuses[said.status_code] += 1
        assert client.broker.fault == ""

    ask()
    return statuses


def settled(client: Client) -> None:
    explicit = {triple for triple in client.broker.facts() if "_:" not in "".join(triple)}
    _, rows = client.broker.rows("students")
    named = {row for row in rows if not row[0].startswith("_:")}
    assert named == {row for row in answers(explicit)["students"] if not row[0].startswith("_:")}


def run(many: int) -> None:
    made = broker(limits=LIMITS)
    made.load(BASE)
    made.create_channel("students", select("?x a :Student"))
    with Client(made, Access(read_grants([TOKEN]))) as client:
        statuses = check(client, many)
        settled(client)
    assert {200, 400, 401} <= set(statuses)
    assert made.number > 2


def test_requests_of_any_kind() -> None:
    run(250)


@pytest.mark.prove
def test_many_requests_of_any_kind() -> None:
    run(10_000)


@schemathesis.serializer("application/sparql-update", "application/sparql-query", *SENT)
def as_text(_context: object, value: object) -> bytes:
    """A body as it is sent: text, whatever it is."""
    return str(value).encode(errors="replace")


def described(many: int, operations: set[str]) -> None:
    """Requests made up from the description, to a server."""
    with serving(broker(limits=LIMITS), Access(read_grants([TOKEN]))) as (url, made):
        schema = schemathesis.openapi.from_dict(httpx.get(f"{url}/openapi.json").json())
        for operation in (result.ok() for result in schema.get_all_operations()):
            operations.add(f"{operation.method} {operation.path}")
            if not operation.path.endswith("/notifications"):
                _described(operation, url, many)
        assert made.fault == ""


def _described(operation: schemathesis.APIOperation, url: str, many: int) -> None:
    for mode in schemathesis.GenerationMode if "{" in operation.path else [schemathesis.GenerationMode.POSITIVE]:

        @settings(max_examples=many, deadline=None, suppress_health_check=PATIENT, database=None)
        @given(operation.as_strategy(generation_mode=mode), st.booleans())
        def ask(case: schemathesis.Case, authorized: bool) -> None:
            headers = {"Authorization": f"Bearer {TOKEN}"} if authorized else {}
            case.call_and_validate(base_url=url, headers=headers, checks=CHECKS)

        ask()


def test_requests_made_up_from_the_description() -> None:
    asked: set[str] = set()
    described(4, asked)
    assert {"post /publish", "post /update", "put /channels/{name}"} <= {line.lower() for line in asked}


@pytest.mark.prove
def test_many_requests_made_up_from_the_description() -> None:
    described(100, set())
