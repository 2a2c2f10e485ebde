"""The command ``mcp``: a server of the Model Context Protocol on standard input and output, for agents."""

import typer


def register(app: typer.Typer) -> None:
    """Add this command."""
    app.command("mcp")(serve)


def serve() -> None:
    """Serve agents over standard input and output: verify, expect, translate, explain."""
    from streamgauge.agents.server import server
    from streamgauge.agents.stdio import serve_stdio

    serve_stdio(server())
