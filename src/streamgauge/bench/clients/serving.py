"""Query services and proxies as processes: ``engine serve``, and nginx where it is installed."""

import re
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

from streamgauge.bench.clients.programs import ProgramError
from streamgauge.model.element import StreamElement
from streamgauge.wire.lines import encode_advance, encode_element

START_S = 60.0
_ADDRESS = re.compile(r" at (http://\S+)")


def free_port() -> int:
    """A port of this machine that is free now."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        return int(bound.getsockname()[1])


@dataclass(frozen=True, slots=True)
class Served:
    """A server: where, and its process."""

    address: str
    pid: int


@contextmanager
def engine_serve(engine: str, clients: int) -> Iterator[Served]:
    """``streamgauge engine serve`` for so many queries; ProgramError when it does not start."""
    limits = ("--max-queries", str(clients + 10), "--max-subscribers", str(clients + 10))
    start = "from streamgauge.cli.main import main; main()"
    process = subprocess.Popen(
        [sys.executable, "-c", start, "engine", "serve", engine, "--port", "0", *limits],
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        yield Served(_address(process), process.pid)
    finally:
        process.terminate()
        try:
            process.wait(START_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _address(process: "subprocess.Popen[str]") -> str:
    assert process.stderr is not None
    said = []
    for line in process.stderr:
        said.append(line)
        if found := _ADDRESS.search(line):
            threading.Thread(target=process.stderr.read, daemon=True).start()
            return found[1].rstrip("/")
    raise ProgramError(f"engine serve did not start: {''.join(said)[-1500:]}")


class Publisher(threading.Thread):
    """Publishes a stream's elements at the service when their time has come, an update a request."""

    def __init__(self, address: str, elements: Sequence[StreamElement], begins: int) -> None:
        super().__init__(name="streamgauge-publisher", daemon=True)
        self._address, self._elements, self._begins = address, elements, begins
        self._over = threading.Event()
        self.published: list[int] = []
        self.failure = ""

    def run(self) -> None:
        """Until the stream ends, or ``end``; ``failure`` says what went wrong."""
        try:
            self._publish()
        except (httpx.HTTPError, OSError) as error:
            self.failure = f"{type(error).__name__}: {error}"

    def _publish(self) -> None:
        times = sorted({element.time for element in self._elements})
        url = f"{self._address}/streams/{self._elements[0].stream.replace('/', '%2F')}"
        with httpx.Client(timeout=START_S) as client:
            for at in times:
                if self._over.wait(max(0.0, (self._begins + at) / 1000 - time.time())):
                    return
                lines = [encode_element(element) for element in self._elements if element.time == at]
                body = b"".join([*lines, encode_advance(at)])
                response = client.post(url, content=body, headers={"Content-Type": "application/x-ndjson"})
                self.published.append(time.time_ns() // 1_000_000)
                if response.status_code != 202:
                    self.failure = f"update at {at} ms: {response.status_code} {response.text[:300]}"
                    return

    def end(self) -> None:
        """No more."""
        self._over.set()
        self.join(START_S)


NGINX = """
worker_processes 1;
daemon off;
error_log stderr warn;
pid {folder}/nginx.pid;
events {{ worker_connections 2048; }}
http {{
  access_log off;
  proxy_cache_path {folder}/cache keys_zone=fragments:10m max_size=200m;
  {temporary}
  server {{
    listen 127.0.0.1:{port};
    location / {{
      proxy_pass {origin};
      proxy_http_version 1.1;
      proxy_set_header Host $http_host;
      proxy_set_header Connection "";
      proxy_cache fragments;
      proxy_cache_key $request_method$http_host$request_uri$http_accept$http_accept_encoding;
      proxy_cache_lock on;
      proxy_cache_revalidate on;
    }}
  }}
}}
"""
_TEMPORARY = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")


def nginx() -> str | None:
    """The program, ``None`` where it is not installed."""
    return shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")


@contextmanager
def caching_proxy(origin: str, port: int, folder: Path) -> Iterator[Served]:
    """A cache (nginx) that shares misses, before an origin (``http://host:port``); ProgramError without it."""
    program = nginx()
    if program is None:
        raise ProgramError("there is no nginx: install it, as Debian's package nginx-light")
    folder.mkdir(parents=True, exist_ok=True)
    temporary = "\n  ".join(f"{name}_temp_path {folder}/{name};" for name in _TEMPORARY)
    config = folder / "nginx.conf"
    config.write_text(NGINX.format(folder=folder, port=port, origin=origin, temporary=temporary), encoding="utf-8")
    process = subprocess.Popen([program, "-c", str(config), "-p", str(folder)], start_new_session=True)
    try:
        yield Served(f"http://127.0.0.1:{port}", process.pid)
    finally:
        process.terminate()
        process.wait(START_S)
