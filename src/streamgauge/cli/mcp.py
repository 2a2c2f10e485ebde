"""The command ``mcp``: a server of the Model Context Protocol on standard input and output, for agents."""

import typer

from streamgauge.cli.configuration import long_running


def register(app: typer.Typer) -> None:
    """Add the command ``mcp``."""
    app.command("mcp")(serve)


@long_running
def serve() -> None:
    """Serve agents over standard input and output: verify, expect, translate, explain."""
    from streamgauge.agents.server import server
    from streamgauge.agents.stdio import serve_stdio

    serve_stdio(server())
