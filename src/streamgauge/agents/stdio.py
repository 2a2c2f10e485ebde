"""Standard input and output of a server for agents: invalid lines are answered with JSON-RPC errors.

The SDK only logs such a line, and the agent would wait for an answer for ever.
"""

import json
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from mcp.server import MCPServer

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
"""JSON-RPC 2.0, section 5.1."""


def serve_stdio(server: "MCPServer[Any]") -> None:
    """Serve requests until standard input ends."""
    import anyio

    anyio.run(_serve, server)


async def _serve(server: "MCPServer[Any]") -> None:
    from mcp.server.stdio import stdio_server

    inner = server._lowlevel_server  # the SDK's public `run` does not accept streams
    async with stdio_server() as (requests, responses):
        await inner.run(AnsweredRequests(requests, responses), responses, inner.create_initialization_options())


class AnsweredRequests:
    """The requests of a stream; invalid ones are skipped, and answered on ``responses``."""

    def __init__(self, requests: Any, responses: Any) -> None:
        self._requests, self._responses = requests, responses

    @property
    def last_context(self) -> Any:
        """The context in which the last request was sent."""
        return self._requests.last_context

    async def receive(self) -> Any:
        """The next valid request; anyio's EndOfStream after the last."""
        # The SDK puts the exception of an invalid line into the stream in place of a request.
        while isinstance(request := await self._requests.receive(), Exception):
            await self._responses.send(refusal(request))
        return request

    async def aclose(self) -> None:
        """Close the stream of requests."""
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
    """The error response to an invalid line, with the request's id if it can be found."""
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
    """The id in a line that only Python's more lenient parser accepts, for example with an unpaired surrogate."""
    try:
        request = json.loads(text) if isinstance(text, str | bytes) else None
    except (ValueError, RecursionError):
        return None
    identifier = request.get("id") if isinstance(request, dict) else None
    # A text is not repeated: it may be just what could not be read, such as an unpaired surrogate.
    return identifier if isinstance(identifier, int) and not isinstance(identifier, bool) else None
