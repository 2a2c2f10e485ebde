"""The service described in OpenAPI 3.1."""

from collections.abc import Sequence
from importlib.metadata import version

from streamgauge.servers.http.openapi import ERROR, TOKEN, Json, body, operation, parameter

_ID: Json = {"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}
_KEY: Json = {
    "name": "Idempotency-Key",
    "in": "header",
    "description": "A request that was done with this key by the same token is answered as it was, and not done again.",
    "schema": {"type": "string", "minLength": 1, "maxLength": 200},
}
_NAME: Json = {**_ID, "name": "name", "description": "The IRI, percent-encoded."}


def description(engines: Sequence[str], profiles: Sequence[str]) -> Json:
    """The description of a service with these engines and semantics in OpenAPI."""
    return {
        "openapi": "3.1.0",
        "info": {"title": "Streamgauge continuous queries", "version": version("streamgauge")},
        "paths": _paths(),
        "components": {
            "securitySchemes": TOKEN,
            "schemas": {"Query": _query(engines, profiles), "Error": ERROR},
        },
        "security": [{}, {"token": []}],
    }


def _query(engines: Sequence[str], profiles: Sequence[str]) -> Json:
    whole = {"type": "integer"}
    return {
        "type": "object",
        "required": ["query"],
        "properties": {
            "query": {
                "type": "string",
                "description": "Continuous SPARQL: RSP-QL, C-SPARQL, CQELS-QL or SPARQLstream.",
            },
            "dialect": {"type": "string"},
            "semantics": {"anyOf": [{"type": "string", "enum": list(profiles)}, {"type": "object"}]},
            "engine": {"type": "string", "enum": list(engines)},
            "static": {"type": "string", "description": "Turtle."},
            "lateness": whole | {"description": "ms"},
            "t0": whole | {"description": "ms"},
            "advance": {"type": "string", "enum": ["wall"]},
        },
    }


def _paths() -> Json:
    return {
        "/queries": {
            "parameters": [_KEY],
            "get": operation("All queries."),
            "post": operation(
                "Register a query.", "201", body("application/json", {"$ref": "#/components/schemas/Query"})
            ),
        },
        "/queries/{id}": {"parameters": [_ID], "get": operation("One query."), "delete": operation("End it.", "204")},
        "/queries/{id}/answers": {
            "parameters": [_ID, parameter("after", "The number of the last answer that was got.")],
            "get": operation("Answers as server-sent events, or by WebSocket."),
        },
        "/streams": {
            "get": operation("All streams."),
            "post": operation("Attach a source.", "201", body("application/json", _source())),
        },
        "/streams/{name}": {
            "parameters": [
                _NAME,
                _KEY,
                parameter("t", "Time of the elements: ms, or now."),
                parameter("form", "A format."),
            ],
            "post": operation("Publish elements.", "202", body("application/x-ndjson", {"type": "string"})),
            "delete": operation("Detach its source.", "204"),
        },
        "/static/{name}": {
            "parameters": [_NAME],
            "put": operation("Share static data.", "201", body("text/turtle", {"type": "string"})),
        },
        "/health": {"get": operation("Whether it is up.")},
        "/metrics": {"get": operation("Counts for Prometheus.")},
    }


def _source() -> Json:
    text = {"type": "string"}
    return {"type": "object", "required": ["stream", "source"], "properties": {"stream": text, "source": text}}
