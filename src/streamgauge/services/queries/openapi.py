"""The service described in OpenAPI 3.1."""

from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Any, TypeAlias

Json: TypeAlias = dict[str, Any]

_ID: Json = {"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}
_NAME: Json = {**_ID, "name": "name", "description": "The IRI, percent-encoded."}
_ERROR: Json = {"type": "object", "properties": {"error": {"type": "string"}}}


def description(engines: Sequence[str], profiles: Sequence[str]) -> Json:
    """What the service with these engines and semantics can be asked."""
    return {
        "openapi": "3.1.0",
        "info": {"title": "Streamgauge continuous queries", "version": version("streamgauge")},
        "paths": _paths(),
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": {"Query": _query(engines, profiles), "Error": _ERROR},
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
            "get": _operation("All queries."),
            "post": _operation(
                "Register a query.", "201", _body("application/json", {"$ref": "#/components/schemas/Query"})
            ),
        },
        "/queries/{id}": {"parameters": [_ID], "get": _operation("One query."), "delete": _operation("End it.", "204")},
        "/queries/{id}/answers": {
            "parameters": [_ID, _parameter("after", "The number of the last answer that was got.")],
            "get": _operation("Answers as server-sent events, or by WebSocket."),
        },
        "/streams": {
            "get": _operation("All streams."),
            "post": _operation("Attach a source.", "201", _body("application/json", _source())),
        },
        "/streams/{name}": {
            "parameters": [
                _NAME,
                _parameter("t", "Time of the elements: ms, or now."),
                _parameter("form", "A format."),
            ],
            "post": _operation("Publish elements.", "202", _body("application/x-ndjson", {"type": "string"})),
            "delete": _operation("Detach its source.", "204"),
        },
        "/static/{name}": {
            "parameters": [_NAME],
            "put": _operation("Share static data.", "201", _body("text/turtle", {"type": "string"})),
        },
        "/health": {"get": _operation("Whether it is up.")},
        "/metrics": {"get": _operation("Counts for Prometheus.")},
    }


def _operation(summary: str, success: str = "200", body: Mapping[str, Any] | None = None) -> Json:
    refused = {
        "description": "Refused.",
        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}},
    }
    responses = {success: {"description": "Done."}, "default": refused}
    return {"summary": summary, "responses": responses, **({"requestBody": body} if body else {})}


def _body(kind: str, schema: Json) -> Json:
    return {"required": True, "content": {kind: {"schema": schema}}}


def _parameter(name: str, about: str) -> Json:
    return {"name": name, "in": "query", "description": about, "schema": {"type": "string"}}


def _source() -> Json:
    text = {"type": "string"}
    return {"type": "object", "required": ["stream", "source"], "properties": {"stream": text, "source": text}}
