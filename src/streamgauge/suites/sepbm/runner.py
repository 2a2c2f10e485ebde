"""SEP-BM's benchmark runner: base load, channels, subscribers, then the sequence (Murth et al., SEP-BM, section 3.2).

The paper's way is one publisher who waits for completion after each publication. Beyond it there are several at once,
and a given rate: times are planned then, whether they can be kept or not, and are what notifications are measured from.
A series of runs is done in a process each; finished runs are not done again.
"""

import gc
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from itertools import islice
from multiprocessing import get_context
from operator import attrgetter
from pathlib import Path
from typing import Final

from streamgauge.harness.pace import HandoverLog, Schedule
from streamgauge.harness.resources import ResourceSampler
from streamgauge.harness.system import Clock
from streamgauge.harness.trial import RunStore
from streamgauge.incremental.budget import gc_frozen
from streamgauge.model.run import Sample
from streamgauge.servers.broker.contract import Publication
from streamgauge.suites.sepbm import recordings
from streamgauge.suites.sepbm.adapters import start
from streamgauge.suites.sepbm.analysis import SLOW
from streamgauge.suites.sepbm.configuration import read
from streamgauge.suites.sepbm.contract import (
    Configuration,
    CountedNotification,
    PublicationRecord,
    Receive,
    ReceivedNotification,
    SepbmChannel,
    SepbmRecording,
    SepbmSystem,
    UnusableSystemError,
)

Progress = Callable[[str, int, int], None]
"""Called with the current phase, and how many publications of how many are acknowledged."""

_LOOK_S: Final = 0.1


@dataclass(frozen=True, slots=True)
class RunPlan:
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

    def chosen(self, configuration: Configuration) -> tuple[SepbmChannel, ...]:
        """The channels that are there, in the configuration's order; ValueError for one that is not."""
        if self.channels is None:
            return configuration.channels
        there = {channel.name: channel for channel in configuration.channels}
        wanted = {name for each in self.channels for name in (SLOW if each == "slow" else (each,))}
        for name in sorted(wanted - there.keys()):
            raise ValueError(f"there is no channel {name} in {configuration.folder}: there are {', '.join(there)}")
        return tuple(channel for name, channel in there.items() if name in wanted)


@dataclass(frozen=True, slots=True)
class RunnerClock:
    """The time of the runner: a monotonic clock in ns, and how to wait (s)."""

    clock: Clock = time.monotonic_ns
    sleep: Callable[[float], None] = time.sleep


def run(
    configuration: Configuration,
    name: str,
    options: Mapping[str, str],
    plan: RunPlan,
    times: RunnerClock | None = None,
    progress: Progress | None = None,
) -> SepbmRecording:
    """A configuration on a system by its adapter's name; ``failure`` says how the system failed, or hung.

    UnusableSystemError when the system cannot be begun at all; ValueError for a channel that is not there, or a
    publication that both publishes and deletes.
    """
    times = times or RunnerClock()
    chosen = plan.chosen(configuration)
    sequence = tuple(islice(configuration.sequence(), plan.first))
    for each in sequence:
        if each.added and each.removed:
            raise ValueError(f"publication {each.number} publishes and deletes: make it two, one for each operation")
    width = {each.name: len(each.variables) for each in chosen}
    system = start(name, options, times.clock)
    kept = RunObservation(sequence, times.clock)
    _measured(system, _Script(configuration, chosen, sequence, plan), kept, times, progress)
    kept.check(width)
    order = {channel: place for place, channel in enumerate(width)}
    return SepbmRecording(
        name,
        dict(options),
        tuple(width),
        kept.published(),
        tuple(sorted(kept.heard, key=lambda each: (each.received, order[each.channel]))),
        kept.samples,
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
    """A configuration with the channels, publications and plan of its run."""

    configuration: Configuration
    channels: tuple[SepbmChannel, ...]
    sequence: tuple[Publication, ...]
    plan: RunPlan


class RunObservation:
    """Everything observed of a run, in places made beforehand; failures are sentences, the first one counts."""

    def __init__(self, sequence: Sequence[Publication], clock: Clock) -> None:
        self.log, self.clock = HandoverLog(sequence, clock), clock
        self.heard: list[ReceivedNotification] = []
        self.beside: list[CountedNotification] = []
        self.sampler: ResourceSampler | None = None
        self.began = clock()
        self.started = 0
        self.failures: list[str] = []
        self.doing = "load"
        self.over = threading.Event()

    def fail(self, sentence: str) -> None:
        """The system failed; the first time counts."""
        self.failures.append(sentence)
        self.over.set()

    def watch(self, processes: Sequence[int]) -> None:
        """Sample what the trees of these processes use, until it has ended."""
        if processes:
            self.sampler = ResourceSampler({"system": processes}, clock=self.clock)
            self.sampler.start()

    @property
    def samples(self) -> tuple[Sample, ...]:
        """The samples of the system's processes."""
        return () if self.sampler is None else tuple(self.sampler.samples["system"])

    def hear(self, subscriber: int) -> Receive:
        """How a channel's subscriber is told, numbered from 0."""
        if subscriber == 0:
            return self.heard.append
        note = self.beside.append

        def hear(heard: ReceivedNotification) -> None:
            rows = len(heard.added) + len(heard.removed)
            note(CountedNotification(heard.channel, subscriber, heard.causes, rows, heard.received))

        return hear

    def published(self) -> tuple[PublicationRecord, ...]:
        """The publications that were acknowledged, in the order of the sequence."""
        log = self.log
        columns = zip(log.elements, log.planned, log.acknowledged, log.known_as, strict=True)
        return tuple(PublicationRecord(each.number, at, back, known) for each, at, back, known in columns if back)

    def check(self, width: Mapping[str, int]) -> None:
        """Leave out what is no notification of a channel that is there, by how wide its rows are; it is a failure."""
        wrong = [each for each in self.heard if not _fits(each, width)]
        if wrong:
            self.heard = [each for each in self.heard if _fits(each, width)]
            name = wrong[0].channel
            said = f"rows of another width than {width[name]}" if name in width else "which is not there"
            self.fail(f"it told {len(wrong)} times what nobody asked, first of channel {name}, {said}")


def _fits(heard: ReceivedNotification, width: Mapping[str, int]) -> bool:
    wanted = width.get(heard.channel)
    return wanted is not None and all(len(row) == wanted for row in (*heard.added, *heard.removed))


def _measured(
    system: SepbmSystem, script: _Script, kept: RunObservation, times: RunnerClock, progress: Progress | None
) -> None:
    """Run the script in a thread that may hang, until it is through or its time is over; then end the system."""
    thread = threading.Thread(target=_perform, args=(system, script, kept, times), name="sepbm", daemon=True)
    thread.start()
    try:
        _await(script, kept, progress)
    finally:
        kept.over.set()
        if kept.sampler is not None:
            kept.sampler.stop()
        _end(system, kept, script.plan.closing)


def _await(script: _Script, kept: RunObservation, progress: Progress | None) -> None:
    """Wait until the script is through, or its time is over."""
    until = time.monotonic() + script.plan.seconds
    while not kept.over.wait(max(0.0, min(_LOOK_S, until - time.monotonic()))):
        if progress is not None:
            progress(kept.doing, kept.log.done, len(script.sequence))
        if time.monotonic() >= until:
            kept.fail(
                f"after the time limit of {script.plan.seconds:g} s it was still at: {kept.doing}, "
                f"{kept.log.done} of {len(script.sequence)} publications acknowledged"
            )


def _end(system: SepbmSystem, kept: RunObservation, within: float) -> None:
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


def _perform(system: SepbmSystem, script: _Script, kept: RunObservation, times: RunnerClock) -> None:
    """Everything that the system is asked to do, in order."""
    try:
        with gc_frozen():
            _prepare(system, script, kept)
        kept.doing, kept.started = "sequence", kept.clock()
        _publish(system, script, kept, times)
        kept.doing = "finish"
        if not kept.over.is_set():
            system.advance(len(script.sequence))
            system.settle()
    except Exception as error:
        kept.fail(f"{kept.doing}: {words_of(error)}")
    finally:
        gc.unfreeze()
        kept.over.set()


def _prepare(system: SepbmSystem, script: _Script, kept: RunObservation) -> None:
    """The base load, channels and their subscribers."""
    system.start(script.configuration)
    kept.watch(system.processes)
    kept.doing = "channels"
    for subscriber in range(script.plan.subscribers):
        for channel in script.channels:
            system.subscribe(channel, kept.hear(subscriber))
    system.settle()


def _publish(system: SepbmSystem, script: _Script, kept: RunObservation, times: RunnerClock) -> None:
    """The sequence by all publishers, each its share in order; who publishes alone does so in this thread."""
    publishers, rate, over = script.plan.publishers, script.plan.rate, kept.over.is_set
    shares = [range(first, len(script.sequence), publishers) for first in range(publishers)]

    def publish(share: range) -> None:
        if rate is None:
            kept.log.feed_settled(system.feed, system.settle, share, over)
        else:
            schedule = Schedule(kept.started, 1e9 / rate, times.clock, times.sleep)
            kept.log.feed_planned(system.feed, zip(share, share, strict=True), schedule, over)

    def publish_guarded(share: range) -> None:
        try:
            publish(share)
        except Exception as error:
            kept.fail(f"{kept.doing}: {words_of(error)}")

    if publishers == 1:
        publish(shares[0])
        return
    threads = [threading.Thread(target=publish_guarded, args=(share,), daemon=True) for share in shares if share]
    for each in threads:
        each.start()
    for each in threads:
        each.join()


def words_of(error: BaseException) -> str:
    """The message of an exception, with its kind where the message is not for people."""
    text = str(error)
    return text if isinstance(error, UnusableSystemError) and text else f"{type(error).__name__}: {text}"


Tell = Callable[[str, float], None]
"""Called with the next step, and the share of steps that are done."""


@dataclass(frozen=True)
class SeriesRun:
    """A run: its folder's name, the configuration's folder, the system with its options, and how it is published to."""

    name: str
    configuration: Path
    system: str
    options: Mapping[str, str] = field(default_factory=dict)
    plan: RunPlan = field(default_factory=RunPlan)


def done(wanted: Iterable[SeriesRun], folder: Path, tell: Tell) -> dict[str, str]:
    """Do what is not kept yet; by its name why a run could not be done at all."""
    todo = list(wanted)
    lacking: dict[str, str] = {}
    for place, each in enumerate(todo):
        if kept(each, folder):
            continue
        tell(f"{each.name} ({place + 1} of {len(todo)} runs)", place / len(todo))
        try:
            with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
                pool.submit(_do, each, folder).result()
        except (UnusableSystemError, BrokenProcessPool) as error:
            lacking[each.name] = str(error)
    return lacking


def kept(wanted: SeriesRun, folder: Path) -> bool:
    """Whether a run was done before."""
    return _store(folder).finished(wanted.name) is not None


def _store(folder: Path) -> RunStore[Path]:
    """The recordings' folders: one with its description is whole."""
    return RunStore(folder, lambda place: place if (place / recordings.ABOUT).exists() else None)


def _do(wanted: SeriesRun, folder: Path) -> None:
    configuration = read(wanted.configuration)
    store = _store(folder)
    with store.stage(wanted.name) as place:
        recordings.write(place, run(configuration, wanted.system, wanted.options, wanted.plan), configuration)
        store.keep(place, wanted.name)
