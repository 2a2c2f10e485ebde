"""JSON with an entity tag: a strong validator of exactly the bytes that are sent (RFC 9110, 8.8.3)."""

from collections.abc import Mapping

from starlette.responses import JSONResponse, Response

from streamgauge.servers.http.conditions import Conditions, entity_tag


def json_tag(data: Mapping[str, object]) -> str:
    """The entity tag of data as ``tagged_json`` sends it."""
    return entity_tag(bytes(JSONResponse(data).body))


def tagged_json(
    data: Mapping[str, object],
    conditions: Conditions | None = None,
    status: int = 200,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """The data with its tag; for a read, 304 when the client has it; PreconditionError when If-Match does not hold."""
    response = JSONResponse(data, status, dict(headers or {}))
    tag = entity_tag(bytes(response.body))
    response.headers["ETag"] = tag
    if conditions is not None:
        Conditions(conditions.match).require((tag,), "what is read")
        if conditions.names((tag,)):
            return Response(status_code=304, headers={"ETag": tag})
    return response
