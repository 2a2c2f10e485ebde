"""Fragments clients that poll a server of Linked Data, optionally behind a shared cache (nginx)."""

import re
import shutil
import socket
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from streamgauge.harness.process import ChildProcess, JsonProgram, ProgramError
from streamgauge.outgoing.clients import client, crowd_limits
from streamgauge.suites.crowds.scenario import (
    PLANS,
    Findings,
    ServerHistory,
)
from streamgauge.suites.crowds.systems import LOOK_S, READY_S, CrowdData, CrowdSystem, Line
from streamgauge.suites.crowds.updates import PATIENCE_S, Publisher, UpdateRequest, updates

NAMES: Final = tuple(PLANS)
LARGE: Final = 1000
"""Number of stations of static data beyond which the data set is stored on disk."""


class FragmentsSystem(CrowdSystem):
    """A fragments server whose data set is renewed, and clients that poll it, optionally behind a cache."""

    program = "watchers"

    def start(self, task: CrowdData) -> None:
        """Start the server with the static data, and the cache."""
        scenario, self._data = self.scenario, task
        self._port, outer = free_port(), free_port()
        self.address = f"http://127.0.0.1:{outer if scenario.proxy else self._port}/trains"
        self._template = f"{self.address}{{?subject,predicate,object,graph}}"
        document: dict[str, Any] = {
            "stream": str(task.stream), "static": str(task.static), "method": scenario.method, "label": scenario.label,
            "renewal": scenario.renewal, "slack": scenario.slack, "port": self._port, "template": self._template,
            "store": str(self.folder / "stores" / scenario.name) if scenario.beside > LARGE else None,
        }  # fmt: skip
        self.server = self._renewed = JsonProgram("streamgauge.suites.crowds.fragments_server", document)
        self._stack.enter_context(self._renewed)
        self.about = {"quads": self._renewed.wait_for("address", READY_S)["quads"]}
        if scenario.proxy:
            cache = (self.folder / "proxy" / str(outer)).resolve()
            self._stack.enter_context(caching_proxy(f"http://127.0.0.1:{self._port}", outer, cache))

    def task(self) -> dict[str, Any]:
        """The terms of the query streamers."""
        scenario = self.scenario
        plan, caching = PLANS[scenario.system]
        return {
            "address": self.address, "plan": plan, "cache": caching, "method": scenario.method,
            "label": scenario.label, "template": self._template, "spread": scenario.spread,
            "period": scenario.period, "jitter": scenario.jitter,
        }  # fmt: skip

    def begin(self, receive: Callable[[Line], object]) -> Publisher:
        """Start the publisher, and clients once the first update is applied; their start is measured."""
        due = [UpdateRequest(update.time, "", b"", "") for update in updates(self._data.elements, self.scenario.slack)]
        self._begun, applied = self._begins(0), threading.Event()

        def feed(request: UpdateRequest) -> None:
            self.feed(request)
            applied.set()

        publisher = Publisher(feed, due, self._begun)
        publisher.start()
        # A publisher that failed never applies anything: its error is raised here, instead of waiting for ever.
        while not applied.wait(LOOK_S):
            if not publisher.is_alive():
                publisher.check(self.scenario.name)
        self.subscribe(self.scenario.query, receive)
        return publisher

    def feed(self, element: UpdateRequest) -> None:
        """Have the server apply an update; returns when it has."""
        self._renewed.tell(begins=self._begun, apply=element.time)
        self._renewed.wait_for("applied")

    def counts(self) -> Mapping[str, int]:
        """Requests and bytes of bodies served, from the server's metrics."""
        text = self._metrics()
        totals = {"requests": 0, "bytes": 0}
        for word in totals:
            # One line for each set of labels, of which the sum counts.
            numbers = re.findall(rf"^streamgauge_fragments_{word}_total(?:{{.*}})? (\S+)$", text, re.MULTILINE)
            totals[word] = sum(int(float(value)) for value in numbers)
        return totals

    def _metrics(self) -> str:
        with client(crowd_limits(PATIENCE_S)) as web:
            return web.get(f"http://127.0.0.1:{self._port}/metrics").text

    def judged(self, publisher: Publisher, lines: Sequence[Line]) -> Findings:  # noqa: ARG002 (lines judge themselves)
        """Judge by the facts of the server over time."""
        applied = [(line["at"], line["applied"]) for line in self._renewed.lines if "applied" in line]
        judge = ServerHistory(self.scenario, self._data.elements, self._data.triples, applied)
        return Findings([at for at, _ in applied], judge.right)


start: Final = FragmentsSystem


def free_port() -> int:
    """A port of this machine that is free now."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        return int(bound.getsockname()[1])


# Answers vary by Accept and by coding. Both are in the key of the cache, where `map` has reduced what clients write in
# Accept-Encoding to one coding, so that they share answers; Vary is ignored. With the lock, one of several misses asks
# the origin and the others wait.
NGINX = """
worker_processes 1;
daemon off;
error_log stderr warn;
pid {folder}/nginx.pid;
events {{ worker_connections 2048; }}
http {{
  access_log off;
  map $http_accept_encoding $coding {{ default ""; ~br br; ~gzip gzip; }}
  proxy_cache_path {folder}/cache keys_zone=fragments:10m max_size=200m;
  {temporary}
  server {{
    listen 127.0.0.1:{port};
    location / {{
      proxy_pass {origin};
      proxy_http_version 1.1;
      proxy_set_header Host $http_host;
      proxy_set_header Connection "";
      proxy_set_header Accept-Encoding $coding;
      proxy_ignore_headers Vary;
      proxy_cache fragments;
      proxy_cache_key "$http_host$request_uri $http_accept $coding";
      proxy_cache_lock on;
    }}
  }}
}}
"""
_TEMPORARY = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")


def nginx() -> str | None:
    """The path of nginx, ``None`` if it is not installed."""
    return shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")


@contextmanager
def caching_proxy(origin: str, port: int, folder: Path) -> Iterator[None]:
    """A cache (nginx) that merges misses, in front of an origin (``http://host:port``); ProgramError without nginx."""
    program = nginx()
    if program is None:
        raise ProgramError("nginx is not installed: install it (Debian: apt-get install nginx-light)")
    folder.mkdir(parents=True, exist_ok=True)
    temporary = "\n  ".join(f"{name}_temp_path {folder}/{name};" for name in _TEMPORARY)
    config = folder / "nginx.conf"
    config.write_text(NGINX.format(folder=folder, port=port, origin=origin, temporary=temporary), encoding="utf-8")
    with ChildProcess([program, "-c", str(config), "-p", str(folder)], piped=False, session=True) as process:
        try:
            yield
        finally:
            process.terminate()
            process.await_end()
