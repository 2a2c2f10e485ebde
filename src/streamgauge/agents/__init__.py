"""Streamgauge for agents: a server of the Model Context Protocol with four tools (docs/agents.md)."""
