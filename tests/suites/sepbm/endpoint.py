"""A SPARQL endpoint for tests: pyoxigraph's store over HTTP, query and update at one path."""

import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pyoxigraph as ox


@contextmanager
def endpoint():
    """Its URL."""
    store = ox.Store()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            text = self.rfile.read(int(self.headers["Content-Length"])).decode()
            try:
                self._answer(200, self._done(text))
            except SyntaxError as error:
                self._answer(400, str(error).encode())

        def _done(self, text):
            if self.headers["Content-Type"] == "application/sparql-update":
                store.update(text)
                return b""
            return store.query(text).serialize(format=ox.QueryResultsFormat.JSON)

        def _answer(self, status, body):
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/sparql"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
