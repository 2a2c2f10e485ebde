"""Servers as processes: ``engine serve``, ``broker serve``, and nginx where it is installed."""

import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from streamgauge.harness.served import Service, ServiceError
from streamgauge.suites.crowds.programs import ProgramError

START_S = 60.0


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


def engine_serve(engine: str, clients: int) -> AbstractContextManager[Served]:
    """``streamgauge engine serve`` for so many queries; ProgramError when it does not start."""
    return _served(
        "engine", "serve", engine, "--max-queries", f"{clients + 10}", "--max-subscribers", f"{clients + 10}"
    )


def broker_serve(static: Path, clients: int) -> AbstractContextManager[Served]:
    """``streamgauge broker serve`` for so many channels and subscribers; ProgramError when it does not start."""
    most = f"{clients + 10}"
    limits = ("--max-channels", most, "--max-subscribers", most, "--max-connections", f"{2 * clients + 10}")
    return _served("broker", "serve", str(static), *limits)


@contextmanager
def _served(*words: str) -> Iterator[Served]:
    service = Service(*words)
    try:
        yield Served(_address(service), service.pid)
    finally:
        service.end()


def _address(service: Service) -> str:
    try:
        return service.wait()
    except ServiceError as error:
        raise ProgramError(str(error)) from error


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
