"""Outgoing requests are made by ``streamgauge.outgoing`` alone, whose every client is held to one set of limits."""

import ast
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from streamgauge.outgoing import clients
from tests.boundaries.sockets import SRC
from tests.outgoing.test_clients import FAULTY, LIMITS, answering

ROOT = Path(__file__).parents[2]
HELD = {"client", "async_client", "guarded_client"}
"""Factories that tests/outgoing/test_clients.py holds to its faulty servers."""

REST = {"application_client": "no network", "crowd_limits": "limits, no client"}


def test_every_factory_of_clients_has_its_set():
    tree = ast.parse(Path(clients.__file__).read_text())
    public = {
        entry.name for entry in tree.body if isinstance(entry, ast.FunctionDef) and not entry.name.startswith("_")
    }
    assert public == HELD | set(REST)


def banned(text, name="src/streamgauge/workbench/other.py"):
    """What ruff says of the imports of a module."""
    command = [sys.executable, "-m", "ruff", "check", "--select", "TID251", "--stdin-filename", name, "-"]
    done = subprocess.run(command, input=text, capture_output=True, text=True, cwd=ROOT, check=False)
    return done.stdout


@pytest.mark.server
@pytest.mark.parametrize(
    "text",
    [
        "import httpx\nhttpx.get('http://a.example')",
        "import httpx\nhttpx.Client()",
        "from httpx import AsyncClient\nAsyncClient()",
        "import urllib.request\n",
        "from urllib.request import urlopen\n",
        "import http.client\n",
        "import requests\n",
        "import socket\nsocket.create_connection(('a.example', 80))",
        "from websockets.asyncio.client import connect\n",
        "import asyncio\nasyncio.open_connection('a.example', 80)",
        "import uvicorn\n",
        "from http.server import HTTPServer\n",
    ],
)
def test_a_client_or_server_of_another_module_is_refused(text):
    assert "TID251" in banned(text)


@pytest.mark.server
def test_types_of_the_library_are_lent():
    assert "TID251" not in banned("import httpx\nurl = httpx.URL('http://a.example')\nfailure = httpx.TransportError\n")
    assert "TID251" not in banned("import httpx\nhttpx.Client()\n", str(Path(clients.__file__).relative_to(ROOT)))
    assert SRC.is_dir()


@pytest.mark.server
def test_an_unbounded_client_fails():
    answer, error = FAULTY["a body that trickles"]
    with (
        answering(answer) as port,
        httpx.Client(timeout=LIMITS.seconds, trust_env=False) as web,
        pytest.raises(BaseException, match="DID NOT RAISE"),
        pytest.raises(error),
    ):
        web.get(f"http://127.0.0.1:{port}/")
