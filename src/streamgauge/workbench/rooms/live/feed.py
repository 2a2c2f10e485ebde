"""The answers of a query as server-sent events, for the page that is open."""

import json
from collections.abc import AsyncIterator, Mapping
from typing import Final

from streamgauge.servers.http import events
from streamgauge.servers.http.events import AnswerSubscription, Numbered
from streamgauge.servers.queries.registered import RegisteredQuery
from streamgauge.workbench.rooms.live.registrations import LiveRegistrations
from streamgauge.workbench.rooms.live.rows import read_answers, shown_rows

EVENT: Final = 256 * 2**10
"""Bytes of one event; an answer with more has its rows left out, which the page shows when it is read again."""

TURN_S: Final = 0.5
"""How often a feed looks whether the workbench is about to stop."""


async def answer_feed(
    registrations: LiveRegistrations,
    running: RegisteredQuery,
    subscription: AnswerSubscription[bytes],
    signal: events.Signal,
    prefixes: Mapping[str, str],
) -> AsyncIterator[bytes]:
    """Events of a subscription's answers until the query ends; ``signal`` wakes the stream.

    An answer is ``{"columns", "rows": [[number, instant, sign, cells]], "more"}`` with its number as id; ``held`` and
    ``flowing`` mark when answers are held and released, ``missed`` has the number of dropped ones, ``over`` the reason
    for the end.
    """
    # Holding and releasing must wake the stream too, not only new answers.
    leave = registrations.watch(running.name, signal.set)
    paused = False
    try:
        for event in _missed(subscription):
            yield event
        while True:
            if (registrations.held_at(running.name) is not None) != paused:
                paused = not paused
                subscription.pause() if paused else subscription.resume(subscription.place)
                yield events.event(b"{}", kind="held" if paused else "flowing")
                for event in () if paused else _missed(subscription):
                    yield event
            # Read before the answers: those that came before the end are still sent.
            over = subscription.over
            for answer in () if paused else subscription.take():
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
    text = json.dumps({"columns": received.line.columns, "rows": rows, "more": max(0, count - len(rows))}).encode()
    if len(text) > EVENT:
        return json.dumps({"columns": received.line.columns, "rows": [], "more": count}).encode()
    return text


def _missed(subscription: AnswerSubscription[bytes]) -> list[bytes]:
    """The event that counts the answers that are no longer kept, if there are any."""
    missed = subscription.missed
    return [events.event(json.dumps({"missed": missed}).encode(), kind="missed")] if missed else []
