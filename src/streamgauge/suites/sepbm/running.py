"""SEP-BM's benchmark runner: base load, channels, subscribers, then the sequence (Murth et al., SEP-BM, section 3.2).

The paper's way is one publisher who waits for completion after each publication. Beyond it there are several at once,
and a given rate: times are planned then, whether they can be kept or not, and are what notifications are measured from.
"""

import gc
import threading
import time
from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from operator import attrgetter
from typing import Final

from streamgauge.harness.sample import sample
from streamgauge.incremental.lasting import lasting
from streamgauge.model.run import Sample
from streamgauge.model.terms import Triple
from streamgauge.servers.broker.contract import Publication
from streamgauge.suites.sepbm.adapters import start
from streamgauge.suites.sepbm.analysing import SLOW
from streamgauge.suites.sepbm.contract import (
    Beside,
    Channel,
    Configuration,
    Hear,
    Heard,
    Published,
    Recording,
    System,
    UnusableSystemError,
)

Clock = Callable[[], int]
Progress = Callable[[str, int, int], None]
"""Told what is done now, and how many publications of how many are acknowledged."""

_LOOK_S: Final = 0.1
_SPIN_S: Final = 200e-6


@dataclass(frozen=True, slots=True)
class Plan:
    """How a configuration is run.

    ``channels`` are those that are there (``None``: all; ``slow``: the paper's ten slow ones), each with
    ``subscribers``. Of the sequence the ``first`` publications are taken (``None``: all), by ``publishers`` at once, at
    ``rate`` a second or, without one, each when the one before is complete. ``seconds`` is the most that all may take,
    the load too, and ``closing`` (s) the most
    that the system may take to end.
    """

    channels: tuple[str, ...] | None = None
    publishers: int = 1
    rate: float | None = None
    first: int | None = None
    subscribers: int = 1
    seconds: float = 3600.0
    closing: float = 30.0

    def __post_init__(self) -> None:
        """Refuse what cannot be done."""
        for name, value in (("publishers", self.publishers), ("subscribers", self.subscribers)):
            if value < 1:
                raise ValueError(f"{name} is {value}: there is at least one")
        if self.rate is not None and not self.rate > 0:
            raise ValueError(f"rate is {self.rate:g} publications a second: it is above 0")
        if not self.seconds > 0:
            raise ValueError(f"the time limit is {self.seconds:g} s: it is above 0")

    def chosen(self, configuration: Configuration) -> tuple[Channel, ...]:
        """The channels that are there, in the configuration's order; ValueError for one that is not."""
        if self.channels is None:
            return configuration.channels
        there = {channel.name: channel for channel in configuration.channels}
        wanted = {name for each in self.channels for name in (SLOW if each == "slow" else (each,))}
        for name in sorted(wanted - there.keys()):
            raise ValueError(f"there is no channel {name} in {configuration.folder}: there are {', '.join(there)}")
        return tuple(channel for name, channel in there.items() if name in wanted)


@dataclass(frozen=True, slots=True)
class Times:
    """What the runner knows of time: a monotonic clock in ns, and how to wait (s)."""

    clock: Clock = time.monotonic_ns
    sleep: Callable[[float], None] = time.sleep


def run(
    configuration: Configuration,
    name: str,
    options: Mapping[str, str],
    plan: Plan,
    times: Times | None = None,
    progress: Progress | None = None,
) -> Recording:
    """A configuration on a system by its adapter's name; ``Recording.failure`` says how the system failed, or hung.

    UnusableSystemError when the system cannot be begun at all; ValueError for a channel that is not there, or a
    publication that both publishes and deletes.
    """
    times = times or Times()
    chosen = plan.chosen(configuration)
    sequence = tuple(islice(configuration.sequence(), plan.first))
    for each in sequence:
        if each.added and each.removed:
            raise ValueError(f"publication {each.number} publishes and deletes: make it two, one for each operation")
    width = {each.name: len(each.variables) for each in chosen}
    system = start(name, options, times.clock)
    kept = Kept(sequence, times.clock)
    _measured(system, _Script(configuration, chosen, sequence, plan), kept, times, progress)
    kept.check(width)
    order = {channel: place for place, channel in enumerate(width)}
    return Recording(
        name,
        dict(options),
        tuple(width),
        kept.published(),
        tuple(sorted(kept.heard, key=lambda each: (each.received, order[each.channel]))),
        tuple(kept.samples),
        kept.started,
        ((kept.started or times.clock()) - kept.began) / 1e9,
        plan.publishers,
        plan.rate,
        next(iter(kept.failures), None),
        plan.subscribers,
        tuple(sorted(kept.beside, key=attrgetter("received"))),
        system.evaluator,
    )


@dataclass(frozen=True, slots=True)
class _Script:
    """What is to be done."""

    configuration: Configuration
    channels: tuple[Channel, ...]
    sequence: tuple[Publication, ...]
    plan: Plan


class Kept:
    """What is observed, in places made beforehand: while the sequence goes on nothing is done but to note it."""

    def __init__(self, sequence: Sequence[Publication], clock: Clock) -> None:
        self.sequence, self.clock = sequence, clock
        self.called, self.acknowledged = array("q", [0]) * len(sequence), array("q", [0]) * len(sequence)
        self.known_as: list[int | None] = [None] * len(sequence)
        self.heard: list[Heard] = []
        self.beside: list[Beside] = []
        self.samples: list[Sample] = []
        self.began = clock()
        self.started = 0
        self.failures: list[str] = []
        self.doing = "load"
        self.over, self.ended = threading.Event(), threading.Event()
        self.samplers: list[threading.Thread] = []

    @property
    def done(self) -> int:
        """How many publications are acknowledged."""
        return len(self.acknowledged) - self.acknowledged.count(0)

    def fail(self, sentence: str) -> None:
        """The system failed; the first time counts."""
        self.failures.append(sentence)
        self.over.set()

    def watch(self, processes: Sequence[int]) -> None:
        """Sample what the trees of these processes use, until it has ended."""
        for pid in processes:
            args = pid, self.samples, self.ended, self.clock
            self.samplers.append(threading.Thread(target=sample, args=args, name="sepbm-sample", daemon=True))
            self.samplers[-1].start()

    def hear(self, subscriber: int) -> Hear:
        """How a channel's subscriber is told, numbered from 0."""
        if subscriber == 0:
            return self.heard.append
        note = self.beside.append

        def hear(heard: Heard) -> None:
            rows = len(heard.added) + len(heard.removed)
            note(Beside(heard.channel, subscriber, heard.causes, rows, heard.received))

        return hear

    def published(self) -> tuple[Published, ...]:
        """The publications that were acknowledged, in the order of the sequence."""
        columns = zip(self.sequence, self.called, self.acknowledged, self.known_as, strict=True)
        return tuple(Published(each.number, at, back, known) for each, at, back, known in columns if back)

    def check(self, width: Mapping[str, int]) -> None:
        """Leave out what is no notification of a channel that is there, by how wide its rows are; it is a failure."""
        wrong = [each for each in self.heard if not _fits(each, width)]
        if wrong:
            self.heard = [each for each in self.heard if _fits(each, width)]
            name = wrong[0].channel
            said = f"rows of another width than {width[name]}" if name in width else "which is not there"
            self.fail(f"it told {len(wrong)} times what nobody asked, first of channel {name}, {said}")


def _fits(heard: Heard, width: Mapping[str, int]) -> bool:
    wanted = width.get(heard.channel)
    return wanted is not None and all(len(row) == wanted for row in (*heard.added, *heard.removed))


def _measured(system: System, script: _Script, kept: Kept, times: Times, progress: Progress | None) -> None:
    """Run the script in a thread that may hang, until it is through or its time is over; then end the system."""
    thread = threading.Thread(target=_perform, args=(system, script, kept, times), name="sepbm", daemon=True)
    thread.start()
    try:
        _await(script, kept, progress)
    finally:
        kept.over.set()
        kept.ended.set()
        for each in kept.samplers:
            each.join()
        _end(system, kept, script.plan.closing)


def _await(script: _Script, kept: Kept, progress: Progress | None) -> None:
    """Wait until the script is through, or its time is over."""
    until = time.monotonic() + script.plan.seconds
    while not kept.over.wait(max(0.0, min(_LOOK_S, until - time.monotonic()))):
        if progress is not None:
            progress(kept.doing, kept.done, len(script.sequence))
        if time.monotonic() >= until:
            kept.fail(
                f"after the time limit of {script.plan.seconds:g} s it was still at: {kept.doing}, "
                f"{kept.done} of {len(script.sequence)} publications acknowledged"
            )


def _end(system: System, kept: Kept, within: float) -> None:
    """Close the system, which may hang too."""

    def close() -> None:
        try:
            system.close()
        except Exception as error:
            kept.fail(f"it could not be closed: {words_of(error)}")

    thread = threading.Thread(target=close, name="sepbm-close", daemon=True)
    thread.start()
    thread.join(within)
    if thread.is_alive():
        kept.fail(f"it was not closed within {within:g} s")


def _perform(system: System, script: _Script, kept: Kept, times: Times) -> None:
    """Everything that the system is asked to do, in order."""
    try:
        with lasting():
            _prepare(system, script, kept)
        kept.doing, kept.started = "sequence", kept.clock()
        _publish(system, script, kept, times)
        kept.doing = "finish"
        if not kept.over.is_set():
            system.finish()
    except Exception as error:
        kept.fail(f"{kept.doing}: {words_of(error)}")
    finally:
        gc.unfreeze()
        kept.over.set()


def _prepare(system: System, script: _Script, kept: Kept) -> None:
    """The base load, channels and their subscribers."""
    system.load(script.configuration)
    kept.watch(system.processes)
    kept.doing = "channels"
    for channel in script.channels:
        system.create_channel(channel)
    for channel in script.channels:
        for subscriber in range(script.plan.subscribers):
            system.subscribe(channel.name, kept.hear(subscriber))
    system.settle()


def _publish(system: System, script: _Script, kept: Kept, times: Times) -> None:
    """The sequence by all publishers, each its share in order."""
    publishers, rate = script.plan.publishers, script.plan.rate
    shares = [range(first, len(script.sequence), publishers) for first in range(publishers)]
    tasks = [_Publisher(system, kept, share, rate, times) for share in shares if share]
    if len(tasks) == 1:
        tasks[0].run()
        return
    threads = [threading.Thread(target=task.run_guarded, name="sepbm-publisher", daemon=True) for task in tasks]
    for each in threads:
        each.start()
    for each in threads:
        each.join()


_Operation = Callable[[Sequence[Triple]], int | None]


@dataclass(frozen=True, slots=True)
class _Publisher:
    """One publisher: the places of its publications in the sequence, and the rate of all publishers together."""

    system: System
    kept: Kept
    share: range
    rate: float | None
    times: Times

    def run_guarded(self) -> None:
        """Publish; a failure is kept."""
        try:
            self.run()
        except Exception as error:
            self.kept.fail(f"{self.kept.doing}: {words_of(error)}")

    def run(self) -> None:
        """Publish until there is no more, or the run is over."""
        system, sequence = self.system, self.kept.sequence
        steps: list[tuple[int, _Operation, tuple[Triple, ...]]] = [
            (place, system.delete, each.removed) if each.removed else (place, system.publish, each.added)
            for place, each in ((place, sequence[place]) for place in self.share)
        ]
        if self.rate is None:
            self._each_when_complete(steps)
        else:
            self._at_rate(steps, 1e9 / self.rate)

    def _each_when_complete(self, steps: list[tuple[int, _Operation, tuple[Triple, ...]]]) -> None:
        kept, clock, settle, over = self.kept, self.kept.clock, self.system.settle, self.kept.over.is_set
        called, acknowledged, known_as = kept.called, kept.acknowledged, kept.known_as
        for place, operation, graph in steps:
            if over():
                return
            called[place] = clock()
            known_as[place] = operation(graph)
            acknowledged[place] = clock()
            settle()

    def _at_rate(self, steps: list[tuple[int, _Operation, tuple[Triple, ...]]], every: float) -> None:
        """One each ``every`` ns, whoever publishes it; who is late goes on at once, measured from what was planned."""
        kept, clock, over = self.kept, self.kept.clock, self.kept.over.is_set
        for place, operation, graph in steps:
            planned = kept.started + int(place * every)
            self._wait(planned)
            if over():
                return
            kept.called[place] = planned
            kept.known_as[place] = operation(graph)
            kept.acknowledged[place] = clock()

    def _wait(self, until: int) -> None:
        """Sleep, and look at the clock for the last of it, as sleep is not exact."""
        clock, over = self.kept.clock, self.kept.over.is_set
        while (left := until - clock()) > 0 and not over():
            self.times.sleep(min(_LOOK_S, left / 1e9 - _SPIN_S) if left > 1e9 * _SPIN_S else 0)


def words_of(error: BaseException) -> str:
    """What an exception says, with its kind where that is not for people."""
    text = str(error)
    return text if isinstance(error, UnusableSystemError) and text else f"{type(error).__name__}: {text}"
