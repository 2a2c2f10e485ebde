"""Pieces of OpenAPI 3.1 descriptions."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

Json: TypeAlias = dict[str, Any]

ERROR: Final[Json] = {
    "type": "object",
    "properties": {"error": {"type": "string"}},
    "required": ["error"],
    "additionalProperties": False,
}
"""What ``problems.problem`` sends."""

TOKEN: Final[Json] = {"token": {"type": "http", "scheme": "bearer"}}
"""The security scheme of bearer tokens."""

_REFERENCE: Final[Json] = {"schema": {"$ref": "#/components/schemas/Error"}}


def operation(summary: str, success: str = "200", body: Mapping[str, Any] | None = None) -> Json:
    """An operation that answers with one status, or with an error."""
    responses = {success: {"description": "Done."}, "default": refused("Refused.")}
    return {"summary": summary, "responses": responses, **({"requestBody": body} if body else {})}


def refused(why: str) -> Json:
    """A response that says an error."""
    return {"description": why, "content": {"application/json": _REFERENCE}}


def body(kinds: str | Sequence[str], schema: Json) -> Json:
    """A body of one of some media types."""
    return {
        "required": True,
        "content": {kind: {"schema": schema} for kind in ([kinds] if isinstance(kinds, str) else kinds)},
    }


def parameter(name: str, about: str, schema: Json | None = None) -> Json:
    """A parameter of the query string."""
    return {"name": name, "in": "query", "description": about, "schema": schema or {"type": "string"}}
