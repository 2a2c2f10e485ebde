"""The fragments server described in OpenAPI 3.1."""

from collections.abc import Sequence
from importlib.metadata import version
from typing import Final

from streamgauge.servers.fragments.quads import VERSION
from streamgauge.servers.fragments.serving.changing import MEDIA_TYPE
from streamgauge.servers.fragments.serving.events import WHAT
from streamgauge.servers.fragments.serving.formats import FORMATS
from streamgauge.servers.fragments.style import VOCABULARIES, Border, Label
from streamgauge.servers.http.openapi import ERROR, TOKEN, Json, body, parameter, refused

_TEXT: Final[Json] = {"type": "string"}
_FACTS: Final = (
    "text/turtle",
    "application/n-triples",
    "application/n-quads",
    "application/trig",
    "application/ld+json",
)
_PLACES: Final = ("subject", "predicate", "object")
_TERM: Final = 'An IRI, a literal ("a", "a"@en, "1"^^IRI), a variable (?x), or nothing for any.'
_TIME: Final = "now, an xsd:dateTime with a time zone, or ms since 1970."


def description(datasets: Sequence[str]) -> Json:
    """What a server of these data sets can be asked."""
    return {
        "openapi": "3.1.0",
        "info": {"title": "Streamgauge fragments", "version": version("streamgauge")},
        "paths": _paths(datasets),
        "components": {"securitySchemes": TOKEN, "schemas": {"Error": ERROR, "Written": _WRITTEN}},
    }


def _paths(datasets: Sequence[str]) -> Json:
    types = [name for form in FORMATS for name in form.types]
    json = {"application/json": {"schema": {"type": "object"}}}
    text = {"text/plain": {"schema": _TEXT}}
    return {
        "/": {"get": _read("The data sets.", {kind: {} for kind in types}, ("400", "406", "414"))},
        "/health": {"get": _read("Whether it is up.", json, ())},
        "/metrics": {"get": _read("Counts for Prometheus.", text, ())},
        "/openapi.json": {"get": _read("This.", json, ())},
        "/{dataset}": {
            "parameters": [{"name": "dataset", "in": "path", "required": True, "schema": {"enum": list(datasets)}}],
            "get": _fragment([*types, MEDIA_TYPE, "text/event-stream"]),
            "post": _write("Facts hold, beside those that do.", [*_TIMES, *_STYLES], body(_FACTS, _TEXT)),
            "put": _write(
                "Of the matching triples these hold from now on.",
                [*map(_place, _PLACES), *_TIMES, *_STYLES],
                body(_FACTS, _TEXT),
            ),
            "patch": _write("Several changes, or a SPARQL Update.", [*_TIMES, _AT], _PATCH),
            "delete": _write("Matching triples never held; with at, they end then.", [*map(_place, _PLACES), _AT]),
        },
    }


def _read(summary: str, content: Json, errors: Sequence[str]) -> Json:
    responses = {"200": {"description": "Done.", "content": content}} | {each: refused("Refused.") for each in errors}
    return {"summary": summary, "responses": responses}


def _fragment(types: Sequence[str]) -> Json:
    page = {"type": "integer", "minimum": 1, "maximum": 10**7}
    read = _read(
        "A page of a fragment; what changed in it since a version; its changes as events.",
        {kind: {} for kind in types},
        ("400", "404", "406", "410", "414", "422", "429"),
    )
    read["responses"]["304"] = {"description": "As the client has it."}
    read["responses"]["200"]["headers"] = {VERSION: {"schema": _TEXT, "description": "The version of the data set."}}
    read["parameters"] = [
        *map(_place, (*_PLACES, "graph")),
        parameter("values", "Bindings, as SPARQL's VALUES."),
        parameter("limit", "How many quads a page is to have.", {"type": "integer", "minimum": 1}),
        parameter("page", "The number of the page, from 1.", page),
        parameter("since", f"A {VERSION}: what changed since then."),
        parameter("what", "What events carry.", {"enum": list(WHAT)}),
        parameter("at", f"The fragment as it was then: {_TIME}"),
    ]
    return read


def _write(summary: str, parameters: Sequence[Json], sent: Json | None = None) -> Json:
    done = {
        "description": "What changed.",
        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Written"}}},
    }
    whys = {
        "400": "It cannot be understood.",
        "401": "A token is needed.",
        "403": "Nobody may write here.",
        "404": "There is no such data set.",
        "408": "It did not come in time.",
        "412": "The fragment is not as If-Match or If-None-Match demands.",
        "413": "It is too long.",
        "414": "The address is too long.",
        "415": "Another kind of body is needed.",
        "422": "It touches too much, or its key was used.",
        "507": "The disk is full.",
    }
    key = {"name": "Idempotency-Key", "in": "header", "schema": {"type": "string", "minLength": 1, "maxLength": 200}}
    demands = [{"name": name, "in": "header", "schema": _TEXT} for name in ("If-Match", "If-None-Match")]
    return {
        "summary": summary,
        "parameters": [*parameters, key, *demands],
        "responses": {"200": done} | {status: refused(why) for status, why in whys.items()},
        "security": [{"token": []}],
        **({"requestBody": sent} if sent else {}),
    }


def _place(name: str) -> Json:
    return parameter(name, _TERM)


_TIMES: Final = (
    parameter("from", _TIME),
    parameter("until", _TIME),
    parameter("for", "How long: 500ms, 10s, 5m, 1h, 1d."),
)
_AT: Final = parameter("at", _TIME)
_STYLES: Final = (
    parameter("method", "The method by which the body is annotated."),
    parameter("label", "What it says of time.", {"enum": list(Label)}),
    parameter("vocabulary", "In which vocabulary.", {"enum": list(VOCABULARIES)}),
    parameter("border", "Whether a final time belongs to the fact.", {"enum": list(Border)}),
)
_PATTERN: Final[Json] = {
    "type": "object",
    "properties": dict.fromkeys(_PLACES, _TEXT),
    "additionalProperties": False,
    "minProperties": 1,
}
_WHEN: Final[Json] = {"type": ["string", "integer"]}


def _change(required: Sequence[str], **properties: Json) -> Json:
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}


_OPERATIONS: Final[Json] = {
    "type": "array",
    "maxItems": 1000,
    "items": {
        "oneOf": [
            _change(["add"], add=_TEXT, until=_WHEN, **{"from": _WHEN, "for": _TEXT}),
            _change(["replace", "by"], replace=_PATTERN, by=_TEXT, until=_WHEN, **{"from": _WHEN, "for": _TEXT}),
            _change(["expire"], expire=_PATTERN, at=_WHEN),
            _change(["remove"], remove=_PATTERN),
        ]
    },
}
_PATCH: Final[Json] = {
    "required": True,
    "content": {"application/json": {"schema": _OPERATIONS}, "application/sparql-update": {"schema": _TEXT}},
}
_COUNTS: Final = _change(["added", "removed"], added={"type": "integer"}, removed={"type": "integer"})
_WRITTEN: Final = _change(["version", "facts", "quads"], version=_TEXT, facts=_COUNTS, quads=_COUNTS)
