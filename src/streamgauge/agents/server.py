"""The server of the Model Context Protocol, over the official Python SDK (the extra ``mcp``)."""

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, Final

from streamgauge import __version__
from streamgauge.model.extras import require
from streamgauge.model.mistake import MistakeError

if TYPE_CHECKING:
    from mcp.server import MCPServer

ABOUT: Final = """Streamgauge judges continuous queries over RDF streams by the definition of their semantics.
Use expect for the answers that are due, verify for a verdict on an engine's answers (with the first wrong window as a
witness), explain for why answers are wrong, translate for a query in another dialect. Times are ms. Streams are lists
of elements in Turtle. Terms are N-Triples: <http://example.org/a>, "5"^^<http://www.w3.org/2001/XMLSchema#integer>."""


def server() -> "MCPServer[Any]":
    """The server with its tools; MissingExtraError without the SDK."""
    require("mcp")
    from mcp.server import MCPServer
    from mcp.server.mcpserver.exceptions import ToolError

    from streamgauge.agents.tools import TOOLS

    mcpserver: MCPServer[Any] = MCPServer("streamgauge", instructions=ABOUT, version=__version__, log_level="WARNING")
    for tool in TOOLS:
        mcpserver.tool()(_in_sentences(tool, ToolError))
    return mcpserver


def _in_sentences(tool: Callable[..., dict[str, Any]], failure: type[Exception]) -> Callable[..., dict[str, Any]]:
    """The tool with the client's mistakes turned into the protocol's tool errors, which carry the sentence.

    Any other exception is a crash, which the SDK logs and whose text it keeps from the client.
    """

    # The SDK reads names, types and descriptions of arguments from the signature, which `wraps` passes on.
    @wraps(tool)
    def call(**arguments: Any) -> dict[str, Any]:
        try:
            return tool(**arguments)
        except MistakeError as error:
            raise failure(str(error)) from error
        # A mistake of the input, but of the evaluator's depth, so no MistakeError is there to catch.
        except RecursionError as error:
            raise failure("the query or the data are nested too deeply to be evaluated: write them flatter") from error

    return call
