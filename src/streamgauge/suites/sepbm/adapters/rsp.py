"""An RSP engine on the same changes: each channel is a continuous query over all facts since the beginning.

The adapter maintains the closure; its new facts are an element whose time is the publication's number. Streams only
grow, so deletions are not possible.
"""

from collections.abc import Mapping
from dataclasses import replace
from threading import Lock
from typing import Final

from streamgauge.engines import EngineError, command, load
from streamgauge.harness.systems import EngineSystem
from streamgauge.model.answer import Answer
from streamgauge.model.element import StreamElement
from streamgauge.model.engine import Emit
from streamgauge.model.semantics import Grain, Semantics
from streamgauge.model.terms import Triple
from streamgauge.reasoning.closure import Closure
from streamgauge.semantics.profiles import UnknownProfileError, profile
from streamgauge.semantics.refusal import RefusedError
from streamgauge.servers.broker.contract import Publication
from streamgauge.suites.sepbm import (
    STREAM,
    Configuration,
    Receive,
    ReceivedNotification,
    SepbmChannel,
    SepbmSystem,
    UnusableSystemError,
)
from streamgauge.suites.sepbm.adapters import Clock
from streamgauge.suites.sepbm.recordings import continuous

ABOUT: Final = "an RSP engine in the runner's process, over a landmark window"
OPTIONS: Final = {
    "engine": "live (default), or another engine in Python",
    "semantics": "sens (default), or another profile with reports at changes",
}


def start(options: Mapping[str, str], clock: Clock) -> SepbmSystem:
    """An engine without facts; UnusableSystemError if it is unknown or not in this process."""
    name = options.get("engine", "live")
    try:
        engine, semantics = load(name), profile(options.get("semantics", "sens"))
        program = command(engine)
    except (EngineError, UnknownProfileError) as error:
        raise UnusableSystemError(f"system rsp: {error}") from error
    if program is not None:
        raise UnusableSystemError(
            f"system rsp: {name} is a program on a pipe, which says not when it is done: take live"
        )
    return RspSystem(EngineSystem(engine), replace(semantics, since=1, grain=Grain.REPORT), clock)


class RspSystem:
    """An engine in this process whose stream has the new facts of the closure; it runs in the publishing thread."""

    def __init__(self, engine: EngineSystem, semantics: Semantics, clock: Clock) -> None:
        self.processes, self.evaluator = engine.processes, engine.evaluator
        self._engine, self._clock = engine, clock
        self._engine.start(semantics)
        self._subscribers: dict[str, list[Receive]] = {}
        self._number, self._begun, self._lock = 0, False, Lock()

    def start(self, configuration: Configuration) -> None:
        """Keep the base load and its consequences for the first element."""
        self._closure = Closure(configuration.rules())
        self._closure.load(configuration.base())

    def subscribe(self, channel: SepbmChannel, hear: Receive) -> None:
        """Register the channel's query; UnusableSystemError if the engine refuses it or has already started."""
        if channel.name not in self._subscribers:
            try:
                self._engine.subscribe(continuous(channel), self._emit(channel.name))
            except RefusedError as error:
                raise UnusableSystemError(f"channel {channel.name}: {error}") from error
        self._subscribers.setdefault(channel.name, []).append(hear)

    def unsubscribe(self, channel: SepbmChannel) -> None:
        """Drop the subscribers; the engine continues to evaluate the query."""
        self._subscribers.pop(channel.name, None)

    def feed(self, publication: Publication) -> int:
        """Push the new facts of the closure; the number is the element's time. UnusableSystemError for a deletion."""
        if publication.removed:
            raise UnusableSystemError("a stream only grows: take a configuration without deletions for an RSP engine")
        with self._lock:
            self._begin()
            came, _ = self._closure.change(publication.added, ())
            self._number += 1
            self._push(tuple(came))
            return self._number

    def advance(self, time: int) -> None:
        """Do nothing: no evaluation is deferred."""

    def settle(self) -> None:
        """Start the sessions with the base load unless an element did; answers arrive during pushes."""
        with self._lock:
            self._begin()

    def close(self) -> None:
        """Close the sessions of the engine."""
        self._engine.close()

    def _begin(self) -> None:
        if not self._begun:
            self._begun = True
            self._push(tuple(self._closure.facts.match(None, None, None)))

    def _push(self, triples: tuple[Triple, ...]) -> None:
        """Push an element with new facts at the current time."""
        if triples:
            self._engine.feed(StreamElement(STREAM, self._number, self._number, triples))
        # Also for a publication without new facts: time passes with every one.
        self._engine.advance(self._number)

    def _emit(self, name: str) -> Emit:
        clock, subscribers = self._clock, self._subscribers

        def emit(answer: Answer) -> None:
            received = clock()
            # The instant is the time of the element that caused the answer, hence the publication's number.
            causes = () if answer.instant is None else (answer.instant,)
            for hear in subscribers.get(name, ()):
                hear(ReceivedNotification(name, causes, answer.added, answer.removed, received))

        return emit
