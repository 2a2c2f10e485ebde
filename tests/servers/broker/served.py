"""A broker on the web, with and without a server."""

import asyncio
import threading
import time
from contextlib import contextmanager

import httpx

from streamgauge.servers.broker.http import application
from streamgauge.servers.http.server import Serving

TURTLE = {"Content-Type": "text/turtle"}
GRAPH = "<urn:t:s1> a <urn:t:Student> ."
OTHER = "<urn:t:s2> a <urn:t:Student> ."


class Client:
    """Requests to an application without a server; used with ``with``."""

    def __init__(self, broker, access=None):
        self.broker = broker
        self.app = application(broker, access)
        self._loop = asyncio.new_event_loop()
        self._life = self.app.router.lifespan_context(self.app)

    def __enter__(self):
        self._loop.run_until_complete(self._life.__aenter__())
        return self

    def __exit__(self, *what):
        self._loop.run_until_complete(self._life.__aexit__(*what))
        self._loop.run_until_complete(self._loop.shutdown_default_executor())
        self._loop.close()

    def wait(self, doing):
        """What a coroutine gives, run beside the application."""
        return self._loop.run_until_complete(doing)

    def __call__(self, method, path, **options):
        async def ask():
            transport = httpx.ASGITransport(self.app)
            async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as http:
                return await http.request(method, path, **options)

        return self.wait(ask())


@contextmanager
def serving(broker, access=None, port=0, origins=None):
    """A server with its address."""
    messages = []
    server = Serving(application(broker, access, (), origins), "127.0.0.1", port, broker.close, messages.append)
    thread = threading.Thread(target=server.run)
    thread.start()
    while not messages:
        assert thread.is_alive()
        time.sleep(0.01)
    try:
        yield messages[0].rstrip("/"), broker
    finally:
        server.stop()
        thread.join()
