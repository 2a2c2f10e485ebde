"""Every principal: who comes to an application, at each of its routes, and whose account each request goes to."""

import ast
import asyncio
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import httpx
from starlette.routing import Mount, Route, WebSocketRoute
from starlette.staticfiles import StaticFiles

from streamgauge.cli import docs
from streamgauge.servers.broker.access import Access, Grant
from streamgauge.servers.broker.http import application as broker_application
from streamgauge.servers.event_sink import open_event_sink
from streamgauge.servers.fragments.labels import Style
from streamgauge.servers.fragments.pages.dataset import DataSet
from streamgauge.servers.fragments.pages.http import application as fragments_application
from streamgauge.servers.fragments.pages.http import of_host
from streamgauge.servers.fragments.store.indexed import MemoryStore
from streamgauge.servers.fragments.writes.http import WritesHandler
from streamgauge.servers.http.access import FREE
from streamgauge.servers.queries.http import application as query_application
from streamgauge.sources.contract import parse_address
from streamgauge.workbench.application import application as workbench_application
from streamgauge.workbench.rooms import Bench
from tests.boundaries.sockets import SRC, TOKEN, called
from tests.servers.broker.world import broker
from tests.servers.queries.asks import service

READS: Final = frozenset(("GET", "HEAD", "OPTIONS"))


@dataclass(frozen=True)
class Application:
    """How an application is made for a folder and tokens; ``public`` routes are for everybody."""

    make: Callable[[Path, list[str]], Any]
    public: Callable[[str, str], bool] = lambda method, path: method in READS and path in FREE
    pages: bool = False
    """Whether pages from anywhere may come by default, with a token of their own: no browser adds one."""


def _fragments(_folder: Path, tokens: list[str]) -> Any:
    dataset = DataSet("data", MemoryStore(), Style(), lambda: 1_000_000, 100)
    return fragments_application([dataset], [WritesHandler(tokens, of_host, 10_000)])


def _sink(_folder: Path, tokens: list[str]) -> Any:
    sink = open_event_sink(parse_address(f"sse+http://127.0.0.1:0/x{f'?token={tokens[0]}' if tokens else ''}"))
    app = sink._server.config.app.app  # without the ids of requests
    sink.close()
    return app


def _site(folder: Path, _tokens: list[str]) -> Any:
    (folder / "index.html").write_text("x")
    return docs.application(folder)


APPLICATIONS: Final = {
    "servers/broker/http.py": Application(
        lambda _, tokens: broker_application(broker(), Access([Grant(token) for token in tokens]))
    ),
    "servers/queries/http.py": Application(lambda _, tokens: query_application(service(), tokens)),
    "servers/fragments/pages/http.py": Application(_fragments, lambda method, _: method in READS, pages=True),
    "servers/event_sink.py": Application(_sink),
    "workbench/application.py": Application(lambda folder, tokens: workbench_application(Bench(folder), tokens)),
    "cli/docs.py": Application(_site, lambda *_: True),
}
"""By the module that makes it."""


PASSED_ON: Final = {"servers/fragments/writes/feeds.py": "begins and ends with the process, hands all else on"}
"""Modules whose application is around another one."""


def makes_application(text: str) -> bool:
    """Whether a module makes an application: it calls or extends Starlette, or a class of it takes an ASGI scope."""
    if "Starlette" not in text and "App" not in text:
        return False
    tree = ast.parse(text)
    classes = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    if "Starlette" in called(tree) or any("Starlette" in map(ast.unparse, node.bases) for node in classes):
        return True
    methods = (
        part
        for node in classes
        if node.name.endswith("App")
        for part in node.body
        if isinstance(part, ast.AsyncFunctionDef)
    )
    return any(part.name == "__call__" for part in methods)


def routes(app: Any, prefix: str = "") -> Iterator[tuple[str, str]]:
    """(method, path) of every route, those of mounts too; a WebSocket has the method ``WS``."""
    for route in app.routes if hasattr(app, "routes") else ():
        path = prefix + re.sub(r"{[^}]*}", "x", route.path)
        if isinstance(route, Route):
            yield from ((method, path) for method in sorted(route.methods or ()))
        elif isinstance(route, WebSocketRoute):
            yield "WS", path
        elif isinstance(route, Mount) and isinstance(route.app, StaticFiles):
            yield "GET", f"{path}/x"
        else:
            yield from routes(route, path)


async def described(app: Any) -> list[tuple[str, str]]:
    """(method, path) of an application without routes, as it describes them."""
    async with _client(app) as web:
        document = (await web.get("/openapi.json")).json()
    return [
        (method.upper(), path.replace("{dataset}", "data"))
        for path, item in document["paths"].items()
        for method in item
        if method in ("get", "put", "post", "patch", "delete")
    ]


def _client(app: Any) -> httpx.AsyncClient:
    return httpx.AsyncClient(
        transport=httpx.ASGITransport(app, raise_app_exceptions=False), base_url="http://localhost"
    )


COMERS: Final = {
    "nobody": {},
    "a wrong token": {"Authorization": "Bearer another-of-sixteen-letters"},
    "the beginning of a token": {"Authorization": f"Bearer {TOKEN[:-1]}"},
    "a token as a password": {"Authorization": f"Basic {TOKEN}"},
    "a wrong cookie": {"Cookie": "streamgauge_token=another-of-sixteen-letters"},
}
"""Headers of those who have no token."""

FOREIGN: Final = {"Authorization": f"Bearer {TOKEN}", "Origin": "http://evil.example"}
ELSEWHERE: Final = {"Host": "evil.example"}


async def _status(app: Any, method: str, path: str, headers: dict[str, str]) -> int:
    if method == "WS":
        return await _upgrade(app, path, headers)
    async with _client(app) as web, asyncio.timeout(10):
        return (await web.request(method, path, headers=headers)).status_code


async def _upgrade(app: Any, path: str, headers: dict[str, str]) -> int:
    """401 where a WebSocket is closed before it is accepted, else 101."""
    sent: list[str] = []
    raw = [(name.lower().encode(), value.encode()) for name, value in {"Host": "localhost", **headers}.items()]
    scope = {"type": "websocket", "path": path, "raw_path": path.encode(), "query_string": b"", "headers": raw,
             "scheme": "ws", "subprotocols": [], "root_path": ""}  # fmt: skip
    coming = iter([{"type": "websocket.connect"}, {"type": "websocket.disconnect", "code": 1000}])

    async def receive() -> Any:
        return next(coming)

    async def send(message: Any) -> None:
        sent.append(message["type"])

    await app(scope, receive, send)
    return 401 if sent[:1] == ["websocket.close"] else 101


async def trespasses(app: Any, open_app: Any, known: Application) -> list[str]:
    """Whoever gets in without a token, or from a page elsewhere, at each route; ``open_app`` is without tokens."""
    comers = [(name, app, headers) for name, headers in COMERS.items()]
    comers += [] if known.pages else [("a page elsewhere", app, FOREIGN)]
    comers += [("another name of this machine", open_app, ELSEWHERE)]
    return [
        f"{method} {path}: {name} gets {code}"
        for method, path in list(routes(app)) or await described(app)
        if not known.public(method, path)
        for name, visited, headers in comers
        if (code := await _status(visited, method, path, headers)) not in (401, 403, 421)
    ]


ACCOUNTS: Final = ("servers/broker", "servers/queries", "servers/fragments/writes", "servers/http")
"""Folders in which functions have an ``owner``: the principal to whose account something goes."""

FACES: Final = ("http.py", "sepa.py", "delivery.py")
"""Files there that take requests."""


def accounted() -> dict[str, int]:
    """Functions with an ``owner``, by their name (of a method ``.name``): its place among the arguments."""
    results: dict[str, int] = {}
    for file in (file for folder in ACCOUNTS for file in (SRC / folder).rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                names = [argument.arg for argument in (*node.args.args, *node.args.kwonlyargs)]
                method = names[:1] == ["self"]
                if "owner" in names:
                    results[f".{node.name}" if method else node.name] = names.index("owner") - method
    return results


def unaccounted(text: str, functions: dict[str, int]) -> list[int]:
    """Lines on which a function that has an ``owner`` is called, or handed on, without one."""
    lines = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call):
            passes = ast.unparse(node.func).split(".")[-1] in PASSES and node.args
            function, arguments = (node.args[0], node.args[1:]) if passes else (node.func, node.args)
            name = _accounted_name(function)
            by_name = any(keyword.arg in ("owner", None) for keyword in node.keywords)
            if name in functions and not by_name and len(arguments) <= functions[name]:
                lines.append(node.lineno)
    return lines


def _accounted_name(function: ast.expr) -> str:
    """The name of a function of a core, or of a function by itself."""
    match function:
        case ast.Attribute(attr=name, value=core) if ast.unparse(core).split(".")[-1].strip("_") in CORES:
            return f".{name}"
        case ast.Name(id=name):
            return name
    return ""


CORES: Final = frozenset(("broker", "queries", "asked", "registry", "writers", "store"))
"""What keeps accounts, by the names that faces have for them."""

PASSES: Final = frozenset(("partial", "run_in_threadpool", "to_thread"))
"""What calls the function that is its first argument."""
