"""An application reached without sockets: whole responses, and those that go on."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import httpx
from starlette.types import ASGIApp


def client(app: ASGIApp, **headers: str) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://localhost", headers=headers)


@dataclass
class Streamed:
    """A response that goes on; what was sent of it, and whether it has ended."""

    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    parts: asyncio.Queue[bytes] = field(default_factory=asyncio.Queue)
    taking: asyncio.Event = field(default_factory=asyncio.Event)
    ended: asyncio.Event = field(default_factory=asyncio.Event)

    async def next(self) -> dict[str, str]:
        """The next event: its kind, id and data."""
        part = b""
        while not part.endswith(b"\n\n"):
            async with asyncio.timeout(10):
                part += await self.parts.get()
        lines = [line.partition(": ") for line in part.decode().splitlines() if line]
        data = "\n".join(value for name, _, value in lines if name == "data")
        return {**{name: value for name, _, value in lines}, "data": data}


@asynccontextmanager
async def streamed(app: ASGIApp, path: str, query: str = "", **headers: str) -> AsyncIterator[Streamed]:
    """GET, for as long as the block lasts; then the client goes."""
    response, gone = Streamed(), asyncio.Event()
    response.taking.set()

    async def receive():
        await gone.wait()
        return {"type": "http.disconnect"}

    async def send(message):
        await response.taking.wait()
        if message["type"] == "http.response.start":
            response.status = message["status"]
            response.headers = {name.decode(): value.decode() for name, value in message["headers"]}
        elif message.get("body"):
            response.parts.put_nowait(message["body"])

    given = {"host": "localhost", **{name.replace("_", "-"): value for name, value in headers.items()}}
    scope = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "method": "GET",
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "headers": [(name.encode(), value.encode()) for name, value in given.items()],
    }
    running = asyncio.create_task(app(scope, receive, send))
    running.add_done_callback(lambda _: response.ended.set())
    try:
        yield response
    finally:
        gone.set()
        response.taking.set()
        async with asyncio.timeout(10):
            await running
