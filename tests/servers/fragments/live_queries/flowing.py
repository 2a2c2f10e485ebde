"""A line to a server on which streams of events flow as they are sent, and can be cut or fall silent."""

import asyncio
from dataclasses import dataclass, field

import httpx

from tests.servers.fragments.live_queries.simulated import Wire, clock


@dataclass
class Line(Wire):
    """A ``Wire`` with events; ``flows`` are the open streams, ``asked`` when each was asked for, since what."""

    flows: list = field(default_factory=list)
    asked: list = field(default_factory=list)

    async def handle_async_request(self, request):
        if request.headers["accept"] != "text/event-stream":
            return await super().handle_async_request(request)
        self.asked.append((clock(), request.headers.get("last-event-id")))
        await asyncio.sleep(self.random.uniform(*self.delay))
        if self.spoil is not None and (spoilt := self.spoil(request)) is not None:
            return spoilt
        flow = Flow(self, request)
        self.flows.append(flow)
        return await flow.response()

    def cut(self):
        """End all streams as a line does that breaks."""
        for flow in tuple(self.flows):
            flow.chunks.put_nowait(httpx.ReadError("the line is cut"))

    def say(self, chunk):
        """Let something come on all streams that the server did not send."""
        for flow in self.flows:
            flow.chunks.put_nowait(chunk)


class Flow(httpx.AsyncByteStream):
    """One response that goes on."""

    def __init__(self, line, request):
        self._line, self._request = line, request
        self.chunks, self.silent = asyncio.Queue(), False
        self._head = asyncio.get_running_loop().create_future()
        self._gone = asyncio.Event()
        self._task = asyncio.create_task(line.app(self._scope(), self._receive, self._send))

    async def response(self):
        start = await self._head
        return httpx.Response(start["status"], headers=start["headers"], stream=self)

    async def __aiter__(self):
        while (chunk := await self.chunks.get()) is not None:
            if isinstance(chunk, Exception):
                raise chunk
            yield chunk

    async def aclose(self):
        self._gone.set()
        if self in self._line.flows:
            self._line.flows.remove(self)
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def _receive(self):
        if not self._gone.is_set():
            await self._gone.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message):
        if message["type"] == "http.response.start":
            self._head.set_result(message)
            return
        await asyncio.sleep(self._line.random.uniform(*self._line.delay))
        if not self.silent:
            self.chunks.put_nowait(message.get("body", b""))
        if not message.get("more_body", False):
            self.chunks.put_nowait(None)

    def _scope(self):
        url = self._request.url
        return {
            "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "GET", "scheme": url.scheme,
            "headers": [(name.lower(), value) for name, value in self._request.headers.raw], "path": url.path,
            "raw_path": url.raw_path.split(b"?")[0], "query_string": url.query, "server": (url.host, url.port),
            "client": ("127.0.0.1", 123), "root_path": "",
        }  # fmt: skip
