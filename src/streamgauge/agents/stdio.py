"""Standard input and output of a server for agents: lines that are not JSON-RPC are answered with its errors.

The SDK logs such a line and goes on, and the agent would wait for its answer for ever.
"""

import json
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from mcp.server import MCPServer

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
"""JSON-RPC 2.0, section 5.1."""


def serve_stdio(server: "MCPServer[Any]") -> None:
    """Serve until standard input ends."""
    import anyio

    anyio.run(_serve, server)


async def _serve(server: "MCPServer[Any]") -> None:
    from mcp.server.stdio import stdio_server

    inner = server._lowlevel_server  # the SDK's own ``run`` takes no streams
    async with stdio_server() as (requests, responses):
        await inner.run(AnsweredRequests(requests, responses), responses, inner.create_initialization_options())


class AnsweredRequests:
    """The requests of a stream; what cannot be read in it is answered on ``responses``."""

    def __init__(self, requests: Any, responses: Any) -> None:
        self._requests, self._responses = requests, responses

    @property
    def last_context(self) -> Any:
        """The context that the last request was sent in."""
        return self._requests.last_context

    async def receive(self) -> Any:
        """The next request; anyio's EndOfStream after the last."""
        while isinstance(request := await self._requests.receive(), Exception):
            await self._responses.send(refusal(request))
        return request

    async def aclose(self) -> None:
        """Receive no more."""
        await self._requests.aclose()

    def __aiter__(self) -> "AnsweredRequests":
        return self

    async def __anext__(self) -> Any:
        from anyio import EndOfStream

        try:
            return await self.receive()
        except EndOfStream:
            raise StopAsyncIteration from None

    async def __aenter__(self) -> "AnsweredRequests":
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.aclose()


def refusal(error: Exception) -> Any:
    """The answer to a line that is not a request, with the request's id where it can be told."""
    from mcp.shared.message import SessionMessage
    from mcp_types import ErrorData, JSONRPCError

    first: dict[str, Any] = getattr(error, "errors", lambda: [{}])()[0]
    text = first.get("input") if first.get("type") == "json_invalid" else None
    code = INVALID_REQUEST if text is None else PARSE_ERROR
    sentence = (
        f"no JSON: {first.get('ctx', {}).get('error', error)}" if text is not None else "no request of JSON-RPC 2.0"
    )
    data = ErrorData(code=code, message=f"{sentence}: send one request a line")
    return SessionMessage(JSONRPCError(jsonrpc="2.0", id=_identifier(text), error=data))


def _identifier(text: object) -> str | int | None:
    """The id in a line that Python's more lenient reader takes, such as one with half a surrogate pair."""
    try:
        request = json.loads(text) if isinstance(text, str | bytes) else None
    except (ValueError, RecursionError):
        return None
    identifier = request.get("id") if isinstance(request, dict) else None
    return identifier if isinstance(identifier, int) and not isinstance(identifier, bool) else None
