"""The SPARQL 1.1 Protocol at the broker: /query over the current facts, /update as one publication."""

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Final

import pyoxigraph as ox
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from streamgauge.formats.results import results
from streamgauge.model import algebra as al
from streamgauge.model.terms import Row
from streamgauge.query.updates import UpdateOperation
from streamgauge.servers.broker.broker import Broker
from streamgauge.servers.http.limits import Gate, counted_body, text
from streamgauge.servers.http.protocol import (
    RESULTS,
    TRIPLES,
    Kind,
    ProtocolRequest,
    chosen,
    read_protocol,
)
from streamgauge.servers.http.replies import problem
from streamgauge.sparql.algebra import TRUE

_SHORT: Final = 4096
"""Characters up to which updates are parsed concurrently; longer ones are parsed one at a time."""


class SparqlProtocol:
    """Parses requests, and serialises answers in a format that the client accepts."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._reading = Gate(broker.limits.creations, "have long updates read")
        self._answering = Gate(broker.limits.creations, "have queries answered")

    @asynccontextmanager
    async def request(self, kind: Kind, request: Request) -> AsyncIterator[tuple[ProtocolRequest, bytes]]:
        """Yield the operation of a request and its body; ProtocolError, BodyError."""
        # The query string is ASCII after percent-encoding; latin-1 decodes whatever else a client sends without failing
        # here.
        address = request.scope["query_string"].decode("latin-1")
        if request.method in ("GET", "HEAD"):
            yield read_protocol(kind, address), b""
            return
        async with counted_body(request, self._broker.limits.body) as body:
            yield read_protocol(kind, address, request.headers.get("content-type", ""), text(body)), body

    async def update(self, sent: ProtocolRequest) -> list[UpdateOperation]:
        """The parsed operations of an update."""
        read = self._broker.read_update
        if len(sent.text) <= _SHORT:
            return await run_in_threadpool(read, sent.text, sent.graphs)
        async with self._reading.through():
            return await run_in_threadpool(read, sent.text, sent.graphs)

    async def query(self, sent: ProtocolRequest, accept: str) -> Response:
        """The answer of a query over the current facts; 406 if the client accepts no available format."""
        # Also while the body is serialised: rows and text are what takes the memory.
        async with self._answering.through():
            form, rows = await run_in_threadpool(self._broker.ask, sent.text, sent.graphs)
            formats = TRIPLES if isinstance(form, al.Construct) else RESULTS
            media = chosen(accept, formats)
            if media is None:
                return problem(406, f"Accept takes none of {', '.join(formats)}")
            body = await run_in_threadpool(_written, form, rows, media)
        return Response(body, headers={"Cache-Control": "no-store"}, media_type=media)


def _written(form: al.QueryForm, rows: Sequence[Row], media: str) -> bytes:
    if isinstance(form, al.Construct):
        lines = "".join(f"{' '.join(map(str, row))} .\n" for row in rows)
        return ox.serialize(ox.parse(lines, format=ox.RdfFormat.N_TRIPLES), format=TRIPLES[media]) or b""
    # pyoxigraph converts between result formats only from a serialised result, and JSON is the cheapest.
    truth = {"head": {}, "boolean": list(rows) == [(TRUE,)]}
    body = json.dumps(results(form.variables, rows) if isinstance(form, al.Select) else truth).encode()
    if RESULTS[media] == ox.QueryResultsFormat.JSON:
        return body
    return ox.parse_query_results(body, format=ox.QueryResultsFormat.JSON).serialize(format=RESULTS[media]) or b""
