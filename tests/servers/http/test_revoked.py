"""Streams of a token end when it is revoked, those of others go on."""

import asyncio
from functools import partial
from threading import Thread

import pytest

from streamgauge.servers.http.access import Guard, Tokens

ALICE, BOB = "alice-has-this-token", "bob-has-another-token"


def scope(kind: str, token: str, method: str = "GET") -> dict[str, object]:
    headers = [(b"host", b"x.example"), (b"authorization", f"Bearer {token}".encode())]
    more = {"method": method} if kind == "http" else {}
    return {"type": kind, "path": "/answers", "query_string": b"", "headers": headers, **more}


STARTS = {
    "http": {"type": "http.response.start", "status": 200, "headers": []},
    "websocket": {"type": "websocket.accept"},
}
ENDS = {
    "http": {"type": "http.response.body", "body": b"", "more_body": False},
    "websocket": {"type": "websocket.close", "code": 1008, "reason": "the token was revoked"},
}


class Endless:
    """An application whose responses have no end; ``left`` counts those that were ended."""

    left = 0

    async def __call__(self, scope, _receive, send):
        await send(STARTS[scope["type"]])
        try:
            await asyncio.Event().wait()
        finally:
            self.left += 1


async def opened(guard: Guard, kind: str, token: str, method: str = "GET"):
    """A request under way, and the messages that its client got."""
    messages: list[dict[str, object]] = []

    async def send(message):
        messages.append(message)

    task = asyncio.create_task(guard(scope(kind, token, method), None, send))
    while not messages:
        await asyncio.sleep(0)
    return task, messages


@pytest.mark.parametrize("kind", STARTS)
def test_the_streams_of_a_revoked_token_end(kind):
    async def main():
        tokens, app = Tokens([ALICE, BOB]), Endless()
        guard = Guard(app, tokens)
        ended, messages = await opened(guard, kind, ALICE)
        going_on, _ = await opened(guard, kind, BOB)
        writing, _ = await opened(guard, "http", ALICE, "POST")
        reload = Thread(target=tokens.replace, args=([BOB],))  # as SIGHUP does
        reload.start()
        await asyncio.wait_for(ended, 10)
        reload.join()
        assert messages == [STARTS[kind], ENDS[kind]]
        assert (app.left, going_on.done(), writing.done()) == (1, False, False)
        _, (refused, *_) = await opened(guard, kind, ALICE)
        assert refused.get("status", refused.get("reason")) in (401, "not allowed")
        going_on.cancel()
        writing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await going_on

    asyncio.run(main())


def test_a_token_revoked_between_its_admission_and_the_response_ends_only_streams():
    async def main():
        tokens, messages = Tokens([ALICE]), []

        async def send(message):
            messages.append(message)

        async def respond(scope, receive, send, then):
            tokens.replace([BOB])
            await then(scope, receive, send)

        async def brief(scope, _receive, send):
            await send(STARTS["http"])
            await send({"type": "http.response.body", "body": b"all"})

        for app in (brief, Endless()):
            tokens.replace([ALICE])
            guard = Guard(partial(respond, then=app), tokens)
            await asyncio.wait_for(asyncio.create_task(guard(scope("http", ALICE), None, send)), 10)
        assert [message.get("body") for message in messages] == [None, b"all", None, b""]

    asyncio.run(main())
