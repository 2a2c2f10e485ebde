"""An RSP engine on the same changes: each channel a continuous query over all facts from the beginning on.

The closure is kept by the adapter, and what is new in it is an element whose time is the publication's number. Streams
only grow, so nothing can be deleted.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from threading import Lock
from typing import Final

from streamgauge.engines import EngineError, command, evaluator, load
from streamgauge.model.answer import Answer
from streamgauge.model.element import StreamElement
from streamgauge.model.engine import Emit, Engine, Session
from streamgauge.model.query import ContinuousQuery
from streamgauge.model.semantics import Grain, Semantics
from streamgauge.model.terms import Triple
from streamgauge.reasoning.closure import Closure
from streamgauge.semantics.profiles import UnknownProfileError, profile
from streamgauge.suites.sepbm.contract import STREAM, Channel, Configuration, Hear, Heard, UnusableSystemError
from streamgauge.suites.sepbm.recorded import continuous

ABOUT: Final = "an RSP engine in the runner's process, over a landmark window"
OPTIONS: Final = {
    "engine": "live (default), or another engine in Python",
    "semantics": "under which; sens (default) or another profile with reports at changes",
}


def start(options: Mapping[str, str], clock: Callable[[], int]) -> "Rsp":
    """An engine without facts; UnusableSystemError when it is not there, or a program of its own."""
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
    return Rsp(engine, replace(semantics, since=1, grain=Grain.REPORT), clock)


class Rsp:
    """Sessions that begin when all channels are there; those that can share do. Told in the thread that publishes."""

    def __init__(self, engine: Engine, semantics: Semantics, clock: Callable[[], int]) -> None:
        self.processes: Sequence[int] = (os.getpid(),)
        self.evaluator = evaluator(engine)
        self._engine, self._semantics, self._clock = engine, semantics, clock
        self._channels: dict[str, Channel] = {}
        self._ears: dict[str, list[Hear]] = {}
        self._sessions: list[Session] | None = None
        self._number, self._lock = 0, Lock()

    def load(self, configuration: Configuration) -> None:
        """The base load and what follows."""
        self._closure = Closure(configuration.rules())
        self._closure.load(configuration.base())

    def create_channel(self, channel: Channel) -> None:
        """A query; UnusableSystemError says why the engine does not take it, or that it has begun."""
        if self._sessions is not None:
            raise UnusableSystemError(f"channel {channel.name}: queries are asked before the stream begins")
        if reason := self._engine.refuse(continuous(channel), self._semantics):
            raise UnusableSystemError(f"channel {channel.name}: {reason}")
        self._channels[channel.name] = channel

    def delete_channel(self, name: str) -> None:
        """Nobody hears of it any more; its query goes on with the stream."""
        self.unsubscribe(name)

    def subscribe(self, name: str, hear: Hear) -> None:
        """Told of the engine's answers."""
        self._ears.setdefault(name, []).append(hear)

    def unsubscribe(self, name: str) -> None:
        """All of the channel's leave."""
        self._ears.pop(name, None)

    def publish(self, graph: Sequence[Triple]) -> int:
        """Pushed with what follows; its number is the time at which that was."""
        with self._lock:
            sessions = self._begun()
            came, _ = self._closure.change(graph, ())
            self._number += 1
            self._push(sessions, tuple(came))
            return self._number

    def delete(self, graph: Sequence[Triple]) -> int:  # noqa: ARG002
        """Refused."""
        raise UnusableSystemError("a stream only grows: take a configuration without deletions for an RSP engine")

    def settle(self) -> None:
        """Answers come while elements are pushed; before the first the sessions begin with the base load."""
        with self._lock:
            self._begun()

    finish = settle

    def close(self) -> None:
        """Sessions end."""
        for each in self._sessions or ():
            each.close()

    def _begun(self) -> list[Session]:
        if self._sessions is None:
            asked = [(continuous(each), self._semantics, self._emit(name)) for name, each in self._channels.items()]
            self._sessions = _sessions(self._engine, asked)
            self._push(self._sessions, tuple(self._closure.facts.match(None, None, None)))
        return self._sessions

    def _push(self, sessions: Sequence[Session], triples: tuple[Triple, ...]) -> None:
        """What is new at the time that has come."""
        element = StreamElement(STREAM, self._number, self._number, triples)
        for each in sessions:
            if triples:
                each.push(element)
            each.advance(self._number)

    def _emit(self, name: str) -> Emit:
        clock, ears = self._clock, self._ears

        def emit(answer: Answer) -> None:
            received = clock()
            causes = () if answer.instant is None else (answer.instant,)
            for hear in ears.get(name, ()):
                hear(Heard(name, causes, answer.added, answer.removed, received))

        return emit


def _sessions(engine: Engine, asked: Sequence[tuple[ContinuousQuery, Semantics, Emit]]) -> list[Session]:
    """One session for all queries where the engine has such, as ``live``; one each otherwise."""
    together: Callable[..., Session] | None = getattr(engine, "start_all", None)
    if together is not None and asked:
        return [together(asked)]
    return [engine.start(*each) for each in asked]
