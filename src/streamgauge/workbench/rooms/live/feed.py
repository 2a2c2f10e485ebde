"""The answers of a query as server-sent events: numbered, resumed, kept back while they are held."""

import json
from collections.abc import AsyncIterator, Mapping
from typing import Final

from streamgauge.servers.http import events
from streamgauge.servers.http.events import AnswerSubscription, Numbered
from streamgauge.servers.queries.worker import RegisteredQuery
from streamgauge.workbench.rooms.live.registrations import LiveRegistrations
from streamgauge.workbench.rooms.live.rows import read_answers, shown_rows

EVENT: Final = 256 * 2**10
"""Bytes of one event; an answer with more has its rows left out, which the page shows when it is read again."""

TURN_S: Final = 0.5
"""How often a feed looks whether the workbench is about to stop."""


async def answer_feed(
    registrations: LiveRegistrations, running: RegisteredQuery, after: int | None, prefixes: Mapping[str, str]
) -> AsyncIterator[bytes]:
    """Events of a query's answers after a number, until the query ends.

    An answer is ``{"columns", "rows": [[number, instant, sign, cells]], "more"}`` with its number as id; ``held`` and
    ``flowing`` tell when answers are held and released, ``missed`` how many are no longer kept, ``over`` why it ends.
    """
    signal = events.Signal()
    leave = registrations.watch(running.name, signal.set)
    subscription = running.answers.subscribe(after, signal.set)
    held = False
    try:
        for said in _missed(subscription):
            yield said
        while True:
            if (registrations.held_at(running.name) is not None) != held:
                held = not held
                subscription.pause() if held else subscription.resume(subscription.place)
                yield events.event(b"{}", kind="held" if held else "flowing")
                for said in () if held else _missed(subscription):
                    yield said
            over = subscription.over
            for answer in () if held else subscription.take():
                yield events.event(encoded(answer, prefixes), answer.number)
            if over:
                yield events.event(json.dumps({"why": over.why}).encode(), kind="over")
                return
            silent = 0.0
            while not await signal.wait(TURN_S):
                if registrations.leaving.is_set():
                    return
                silent += TURN_S
                if silent >= events.BEAT_S:
                    silent = 0.0
                    yield events.BEAT
    finally:
        leave()
        subscription.close()


def encoded(answer: Numbered[bytes], prefixes: Mapping[str, str]) -> bytes:
    """An answer as JSON for the page."""
    (received,) = read_answers((answer,))
    rows = [[row.number, row.instant, row.sign, row.cells] for row in shown_rows(received, prefixes)]
    count = len(received.line.add) + len(received.line.remove or ())
    found = json.dumps({"columns": received.line.columns, "rows": rows, "more": max(0, count - len(rows))}).encode()
    if len(found) > EVENT:
        return json.dumps({"columns": received.line.columns, "rows": [], "more": count}).encode()
    return found


def _missed(subscription: AnswerSubscription[bytes]) -> list[bytes]:
    """The event that counts the answers that are no longer kept, if there are any."""
    missed = subscription.missed
    return [events.event(json.dumps({"missed": missed}).encode(), kind="missed")] if missed else []
