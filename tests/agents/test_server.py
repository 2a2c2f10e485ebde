"""The server for agents, spoken to by the official SDK's own client over standard input and output."""

import asyncio
import json
import os
import subprocess
import sys
from importlib.util import find_spec
from types import ModuleType

import pytest

from tests.agents.test_tools import QUERY, STREAM, A, B, C, E


async def spoken(mcp: ModuleType) -> dict[str, object]:
    """What the server says to a client that lists its tools and calls each, rightly and wrongly."""
    server = mcp.StdioServerParameters(command=sys.executable, args=["-m", "streamgauge", "mcp"], env=dict(os.environ))
    stream = [each.model_dump(exclude_none=True) for each in STREAM]
    wrong = [{"instant": 5000, "rows": [A, B, E]}, {"instant": 10_000, "rows": [C]}]
    # Named, as its default is the standard error of the moment at which the SDK was imported: that of another test.
    async with mcp.Client(mcp.stdio_client(server, errlog=sys.__stderr__)) as client:
        tools = (await client.list_tools()).tools
        asked = {"query": QUERY, "stream": stream}
        return {
            "tools": {tool.name: tool for tool in tools},
            "verify": await client.call_tool("verify", {**asked, "answers": wrong}),
            "expect": await client.call_tool("expect", {**asked, "advance_to": "10s"}),
            "explain": await client.call_tool("explain", {**asked, "answers": wrong}),
            "translate": await client.call_tool("translate", {"query": QUERY, "to": "cqels"}),
            "refused": await client.call_tool("expect", {**asked, "query": "SELECT ?s { ?s ?p ?o }"}),
            "schema": await client.call_tool("expect", {"query": QUERY, "stream": "readings.nq"}),
        }


ABSENT = "the SDK of the Model Context Protocol (the extra mcp) is not installed here"


@pytest.mark.server
def test_a_client_of_the_sdk_is_answered():
    said = asyncio.run(spoken(pytest.importorskip("mcp", reason=ABSENT)))
    assert set(said["tools"]) == {"verify", "expect", "translate", "explain"}
    schema = said["tools"]["verify"].input_schema
    assert set(schema["required"]) == {"query", "stream", "answers"}
    assert "witness" in said["tools"]["verify"].description

    told = said["verify"].structured_content
    assert not said["verify"].is_error
    assert told["judgement"] == "wrong"
    assert told["witness"]["surplus"][0]["s"] == "<urn:e>"
    assert [each["instant"] for each in said["expect"].structured_content["reports"]] == [5000, 10_000]
    assert said["explain"].structured_content["exact"]
    assert "STREAM <urn:in>" in said["translate"].structured_content["query"]

    assert said["refused"].is_error
    assert "this query has no stream: add a stream clause" in said["refused"].content[0].text
    assert "Traceback" not in said["refused"].content[0].text
    assert said["schema"].is_error


def test_without_the_sdk_the_extra_is_named(command, monkeypatch):
    monkeypatch.setitem(sys.modules, "mcp.server", None)
    code, _, err = command("mcp")
    assert code == 2
    assert err == "streamgauge: streamgauge mcp needs the protocol's SDK: pip install 'streamgauge[mcp]'\n"


INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}},
}
CALL = (
    '{"jsonrpc":"2.0","id":7,"method":"tools/call",'
    '"params":{"name":"translate","arguments":{"query":"x\\ud800","to":"cqels"}}}'
)
LINES = [
    (CALL, 7, -32700),
    ("not json", None, -32700),
    ("[1]", None, -32600),
    ('{"jsonrpc": "2.0"}', None, -32600),
    ("[" * 100_000, None, -32700),
]


@pytest.mark.server
@pytest.mark.skipif(find_spec("mcp") is None, reason=ABSENT)
def test_a_line_that_is_no_request_is_answered_and_others_after_it():
    good = '{"jsonrpc":"2.0","id":8,"method":"tools/list"}'
    lines = [json.dumps(INITIALIZE), '{"jsonrpc":"2.0","method":"notifications/initialized"}']
    asked = "".join(f"{line}\n" for line in (*lines, *(line for line, _, _ in LINES), good))
    with subprocess.Popen(
        [sys.executable, "-m", "streamgauge", "mcp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        process.stdin.write(asked)
        process.stdin.flush()
        answers = [json.loads(process.stdout.readline()) for _ in range(len(LINES) + 2)]
        process.stdin.close()
        assert process.wait(60) == 0
    refused = [(answer["id"], answer["error"]["code"]) for answer in answers if "error" in answer]
    assert sorted(refused, key=str) == sorted(((number, code) for _, number, code in LINES), key=str)
    assert {answer["id"] for answer in answers if "result" in answer} == {1, 8}
