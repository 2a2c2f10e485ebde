"""The broker described in OpenAPI 3.1."""

from importlib.metadata import version
from typing import Final

from streamgauge.servers.broker.limits import SYNTAXES
from streamgauge.servers.http.openapi import ERROR, TOKEN, Json, body, operation, parameter

_TEXT: Final[Json] = {"type": "string"}
_NUMBER: Final[Json] = {"type": "integer", "minimum": 0}
_NAME: Final[Json] = {
    "in": "path",
    "required": True,
    "schema": {"type": "string", "minLength": 1, "maxLength": 200, "pattern": r"^[^/\x00-\x1f]+$"},
}
_KEY: Final[Json] = {
    "name": "Idempotency-Key",
    "in": "header",
    "description": "A publication with a key that the same token gave before does nothing; 422 when it is another.",
    "schema": {"type": "string", "minLength": 1, "maxLength": 200},
}


def description() -> Json:
    """The broker's description in OpenAPI."""
    return {
        "openapi": "3.1.0",
        "info": {"title": "Streamgauge broker", "version": version("streamgauge")},
        "paths": _paths(),
        "components": {"securitySchemes": TOKEN, "schemas": {"Error": ERROR}},
        "security": [{}, {"token": []}],
    }


def _paths() -> Json:
    name, subscriber = {**_NAME, "name": "name"}, {**_NAME, "name": "subscriber"}
    graph = body(tuple(SYNTAXES), _TEXT)
    return {
        "/publish": {
            "parameters": [_KEY],
            "post": operation("Facts are there from now on, those of named graphs too.", body=graph),
        },
        "/delete": {"parameters": [_KEY], "post": operation("Facts are there no more.", body=graph)},
        "/update": {
            "parameters": [_KEY],
            "post": operation("A SPARQL Update as one publication.", body=body("application/sparql-update", _TEXT)),
        },
        "/channels": {
            "parameters": [parameter("after", "The last name of the page before.")],
            "get": operation("The names of channels."),
        },
        "/channels/{name}": {
            "parameters": [name],
            "get": operation("One channel."),
            "put": operation("Create it: SELECT, ASK or CONSTRUCT.", "201", body("application/sparql-query", _TEXT)),
            "delete": operation("Delete it.", "204"),
        },
        "/channels/{name}/rows": {
            "parameters": [name],
            "get": operation("The answer as it is, SPARQL JSON; of a CONSTRUCT a row a triple."),
        },
        "/channels/{name}/notifications": {
            "parameters": [
                name,
                parameter("subscriber", "By a name, notifications are kept until they are acknowledged."),
                parameter("after", "The number of the last notification that was got.", _NUMBER),
            ],
            "get": operation("Notifications as server-sent events, or by WebSocket."),
        },
        "/channels/{name}/subscribers": {"parameters": [name], "get": operation("The subscribers of this token.")},
        "/channels/{name}/subscribers/{subscriber}": {
            "parameters": [name, subscriber],
            "get": operation("One of them: what was acknowledged."),
            "put": {
                **operation("Acknowledge.", "204"),
                "parameters": [parameter("acknowledged", "Up to this number.", _NUMBER)],
            },
            "delete": operation("Unsubscribe.", "204"),
        },
        "/health": {"get": operation("Whether it is up.")},
        "/metrics": {"get": operation("Counts for Prometheus.")},
    }
