"""Fragments as they were at an instant (``?at=TIME``), of data sets whose store keeps what left."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Final
from urllib.parse import quote

from starlette.types import Receive, Scope, Send

from streamgauge.servers.fragments.quads import Quad
from streamgauge.servers.fragments.serving.addresses import Addressing, HostError
from streamgauge.servers.fragments.serving.asked import Asked, AskedError
from streamgauge.servers.fragments.serving.changing import parted
from streamgauge.servers.fragments.serving.dataset import SCANNED, DataSet, Page, TooManyError
from streamgauge.servers.fragments.serving.freshness import clock_headers, date, unchanged
from streamgauge.servers.fragments.serving.reading import UnacceptableError, represented
from streamgauge.servers.fragments.serving.replying import Header, Reply, reply_with, told
from streamgauge.servers.fragments.serving.validity import ValidityError, time
from streamgauge.servers.fragments.serving.view import View
from streamgauge.servers.http.gates import CrowdedError, Gate

WAITING: Final = 64
"""Requests that wait for those before them: each is answered in a thread."""

_STATUS: Final = {AskedError: 400, HostError: 400, ValidityError: 400, UnacceptableError: 406, TooManyError: 422}
_FOR_EVER: Final = b"max-age=31536000, immutable"


class Past:
    """Answers ``?at=TIME``: what was there then changes no more, so that caches may keep it."""

    def __init__(self, addressing: Addressing) -> None:
        self._addressing, self._gate = addressing, Gate(WAITING, "ask what was there")

    def takes(self, method: str, query: bytes, _headers: Mapping[bytes, bytes]) -> bool:
        """Reading with ``at``."""
        asks = b"at=" in query and any(part.startswith(b"at=") for part in query.split(b"&"))
        return asks and method in ("GET", "HEAD")

    def leave(self) -> None:
        """Nothing is under way for long."""

    async def __call__(self, dataset: DataSet, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002
        """Answer with a page, or say that what was there is not known."""
        now = dataset.clock()
        try:
            async with self._gate.through():
                reply = await asyncio.to_thread(self._reply, dataset, scope, now)
        except CrowdedError as error:
            reply = told(503, str(error), (b"retry-after", b"1"))
        except tuple(_STATUS) as error:
            reply = told(_STATUS[type(error)], str(error))
        await reply_with(reply, scope["method"], send, *clock_headers(now))

    def _reply(self, dataset: DataSet, scope: Scope, now: int) -> Reply:
        headers = dict(scope["headers"])
        base = self._addressing(scope["scheme"], headers)
        fragment, given = parted(dataset, scope, base, ("at",))
        instant = time(given["at"], now)
        quads = _quads(dataset, fragment, instant)
        if quads is None:
            return told(410, f"what was there at {given['at']:.40} is not kept here: ask for a later time, or none")
        size = fragment.limit or dataset.page_size
        first = (fragment.number - 1) * size
        page = Page(tuple(quads[first : first + size]), len(quads), None, instant)
        made = represented(View(dataset, base, _then(fragment, given["at"]), page, instant), headers)
        timed: list[Header] = [
            (b"cache-control", _FOR_EVER if instant < now else b"no-cache"),
            (b"memento-datetime", date(instant // 1000)),
            (b"link", f'<{base}{fragment.page}>; rel="original"'.encode("latin-1")),
        ]
        if unchanged(made.tag, None, headers.get(b"if-none-match"), None):
            return Reply(304, [*made.kept_headers, *timed])
        return Reply(200, [*made.headers, *timed], made.body)


def _quads(dataset: DataSet, fragment: Asked, instant: int) -> list[Quad] | None:
    """All that the fragment had; ``None`` when that is not known."""
    found: dict[Quad, None] = {}
    for match in fragment.selection.matches:
        quads = dataset.store.at(match, instant, 0, SCANNED + 1)
        if quads is None:
            return None
        found.update((quad, None) for quad in quads if fragment.selection.takes(quad))
        if len(found) > SCANNED:
            raise TooManyError(f"more than {SCANNED} quads were there: bind another place")
    return list(found)


def _then(fragment: Asked, at: str) -> Asked:
    """The same under addresses that say when."""
    told_ = f"at={quote(at, safe=':')}"
    first, page = (f"{each}{'&' if '?' in each else '?'}{told_}" for each in (fragment.fragment, fragment.page))
    return replace(fragment, fragment=first, page=page)
