"""Descriptions of servers in OpenAPI 3.1, made from their routes: a route carries the description of its operation."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib.metadata import version
from typing import Any, Final, NamedTuple, TypeAlias

from starlette.routing import BaseRoute, Route

Json: TypeAlias = dict[str, Any]

_ERROR: Final[Json] = {
    "type": "object",
    "properties": {"error": {"type": "string"}},
    "required": ["error"],
    "additionalProperties": False,
}
"""The body that ``replies.problem`` sends."""

_TOKEN: Final[Json] = {"token": {"type": "http", "scheme": "bearer"}}
_REFERENCE: Final[Json] = {"schema": {"$ref": "#/components/schemas/Error"}}


class DescribedRoute(Route):
    """A route for one method, with the description of its operation; a plain ``Route`` is not described."""

    def __init__(self, method: str, path: str, endpoint: Callable[..., Any], operation: Json) -> None:
        super().__init__(path, endpoint, methods=[method])
        self.method, self.operation = method, operation


class DescribedOperation(NamedTuple):
    """An operation at a path template (``/channels/{name}``)."""

    method: str
    path: str
    operation: Json


def operations(routes: Iterable[BaseRoute]) -> Iterator[DescribedOperation]:
    """The operations of the described routes among these."""
    for route in routes:
        if isinstance(route, DescribedRoute):
            yield DescribedOperation(route.method, route.path_format, route.operation)


def description(
    title: str,
    described: Iterable[DescribedOperation],
    path_parameters: Mapping[str, Json],
    schemas: Mapping[str, Json] | None = None,
    security: Sequence[Mapping[str, list[str]]] = ({}, {"token": []}),
) -> Json:
    """The document of a server: its operations by path, each path with its ``path_parameters``.

    ``security`` applies to operations that state none: by default a token, or nothing for a service without tokens.
    """
    paths: dict[str, Json] = {}
    for method, path, operation in described:
        item = paths.setdefault(path, {})
        # On the path and not on each operation: OpenAPI wants every template variable described, and all methods share
        # it.
        if named := [parameter for name, parameter in path_parameters.items() if f"{{{name}}}" in path]:
            item["parameters"] = named
        item[method.lower()] = operation
    return {
        "openapi": "3.1.0",
        "info": {"title": title, "version": version("streamgauge")},
        "paths": paths,
        "components": {"securitySchemes": _TOKEN, "schemas": {**(schemas or {}), "Error": _ERROR}},
        **({"security": [*security]} if security else {}),
    }


def operation(summary: str, success: str = "200", body: Json | None = None, parameters: Sequence[Json] = ()) -> Json:
    """An operation that answers with one status, or with an error."""
    responses = {success: {"description": "Done."}, "default": refused("Refused.")}
    sent = {"requestBody": body} if body else {}
    return {"summary": summary, "responses": responses, **sent, **({"parameters": [*parameters]} if parameters else {})}


def refused(why: str) -> Json:
    """Describe an error response."""
    return {"description": why, "content": {"application/json": _REFERENCE}}


def body(kinds: str | Sequence[str], schema: Json) -> Json:
    """A request body in one of several media types."""
    return {
        "required": True,
        "content": {kind: {"schema": schema} for kind in ([kinds] if isinstance(kinds, str) else kinds)},
    }


def parameter(name: str, about: str, schema: Json | None = None) -> Json:
    """A parameter of the query string."""
    return {"name": name, "in": "query", "description": about, "schema": schema or {"type": "string"}}


def path_parameter(name: str, about: str = "", schema: Json | None = None) -> Json:
    """A parameter of the path."""
    description = {"description": about} if about else {}
    return {"name": name, "in": "path", "required": True, **description, "schema": schema or {"type": "string"}}


def retry_key(about: str) -> Json:
    """The header Idempotency-Key; ``about`` describes its effect."""
    schema = {"type": "string", "minLength": 1, "maxLength": 200}
    return {"name": "Idempotency-Key", "in": "header", "description": about, "schema": schema}
