"""SEP-BM's benchmark runner: base load, channels, subscribers, then the sequence (Murth et al., SEP-BM, section 3.2).

In the paper, one publisher waits for completion after each publication. Beyond it, there may be several publishers, and
a rate: then notifications are measured from the planned times, whether these can be kept or not.

Each run of a series is a process; finished runs are not repeated.
"""

import gc
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from multiprocessing import get_context
from operator import attrgetter
from pathlib import Path
from typing import Final

from streamgauge.harness import RunStore
from streamgauge.harness.pace import HandoverLog, Schedule
from streamgauge.harness.resources import ResourceSampler
from streamgauge.harness.systems import Clock
from streamgauge.incremental.budget import gc_frozen
from streamgauge.servers.broker.contract import Publication
from streamgauge.suites.sepbm import (
    Configuration,
    CountedNotification,
    PublicationRecord,
    Receive,
    ReceivedNotification,
    SepbmChannel,
    SepbmRecording,
    SepbmSystem,
    UnusableSystemError,
    read,
    recordings,
)
from streamgauge.suites.sepbm.adapters import start
from streamgauge.suites.sepbm.analysis import SLOW

Progress = Callable[[str, int, int], None]
"""Called with the current phase, the number of acknowledged publications, and that of all."""

_LOOK_S: Final = 0.1


@dataclass(frozen=True, slots=True)
class RunPlan:
    """How a configuration is run.

    ``channels`` (``None``: all; ``slow``: the paper's ten slow ones) have ``subscribers`` each. The ``first``
    publications (``None``: all) are sent by ``publishers`` concurrently, at ``rate`` per second, or each when the
    previous one is complete. ``seconds`` bounds everything including the load, ``closing`` (s) the end of the system.
    """

    channels: tuple[str, ...] | None = None
    publishers: int = 1
    rate: float | None = None
    first: int | None = None
    subscribers: int = 1
    seconds: float = 3600.0
    closing: float = 30.0

    def __post_init__(self) -> None:
        """Refuse impossible values; ValueError."""
        for name, value in (("publishers", self.publishers), ("subscribers", self.subscribers)):
            if value < 1:
                raise ValueError(f"{name} is {value}: at least 1 is needed")
        if self.rate is not None and not self.rate > 0:
            raise ValueError(f"rate is {self.rate:g} publications a second: it must be above 0")
        if not self.seconds > 0:
            raise ValueError(f"the time limit is {self.seconds:g} s: it must be above 0")

    def chosen(self, configuration: Configuration) -> tuple[SepbmChannel, ...]:
        """The plan's channels in the configuration's order; ValueError for an unknown one."""
        if self.channels is None:
            return configuration.channels
        there = {channel.name: channel for channel in configuration.channels}
        wanted = {name for channel in self.channels for name in (SLOW if channel == "slow" else (channel,))}
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
    """Run a configuration on a system by its adapter's name; ``failure`` is the reason if the system failed or hung.

    UnusableSystemError if the system cannot be started; ValueError for an unknown channel, or a publication that both
    publishes and deletes.
    """
    times = times or RunnerClock()
    channels = plan.chosen(configuration)
    sequence = tuple(islice(configuration.sequence(), plan.first))
    for publication in sequence:
        if publication.added and publication.removed:
            raise ValueError(f"publication {publication.number} publishes and deletes: split it into two publications")
    system = start(name, options, times.clock)
    observed = _Observation(system, configuration, channels, sequence, plan, times)
    observed.measure(progress)
    return observed.recording(name, options)


class _Observation:
    """A run and its observation, in preallocated places; of several failures the first counts.

    The system runs in a thread, which may hang, until it is done or the time is over; then it is closed.
    """

    def __init__(
        self,
        system: SepbmSystem,
        configuration: Configuration,
        channels: Sequence[SepbmChannel],
        sequence: Sequence[Publication],
        plan: RunPlan,
        times: RunnerClock,
    ) -> None:
        self._system, self._configuration, self._channels = system, configuration, channels
        self._plan, self._times, self._clock = plan, times, times.clock
        self._log = HandoverLog(sequence, times.clock)
        self._heard: list[ReceivedNotification] = []
        self._beside: list[CountedNotification] = []
        self._sampler: ResourceSampler | None = None
        self._began, self._started = times.clock(), 0
        self._failures: list[str] = []
        self._doing = "load"
        self._over = threading.Event()

    def measure(self, progress: Progress | None) -> None:
        """Run the system until it is done or its time is over, then close it."""
        threading.Thread(target=self._perform, name="sepbm", daemon=True).start()
        try:
            self._await(progress)
        finally:
            self._over.set()
            if self._sampler is not None:
                self._sampler.stop()
            self._end()

    def recording(self, name: str, options: Mapping[str, str]) -> SepbmRecording:
        """The recording; acknowledged publications are in the order of the sequence."""
        log, order = self._log, {channel.name: place for place, channel in enumerate(self._channels)}
        self._drop_unasked()
        # `acknowledged` is 0 for a publication that was not.
        columns = zip(log.elements, log.planned, log.acknowledged, log.known_as, strict=True)
        return SepbmRecording(
            name,
            dict(options),
            tuple(order),
            tuple(PublicationRecord(row.number, at, back, known) for row, at, back, known in columns if back),
            tuple(sorted(self._heard, key=lambda notification: (notification.received, order[notification.channel]))),
            () if self._sampler is None else tuple(self._sampler.samples["system"]),
            self._started,
            # A run that failed while loading has no start of the sequence: it has loaded until now.
            ((self._started or self._clock()) - self._began) / 1e9,
            self._plan.publishers,
            self._plan.rate,
            next(iter(self._failures), None),
            self._plan.subscribers,
            tuple(sorted(self._beside, key=attrgetter("received"))),
            self._system.evaluator,
        )

    def _drop_unasked(self) -> None:
        """Drop notifications with rows of the wrong width; they make the run a failure."""
        width = {channel.name: len(channel.variables) for channel in self._channels}
        fits = [
            all(len(row) == width.get(notification.channel) for row in (*notification.added, *notification.removed))
            and notification.channel in width
            for notification in self._heard
        ]
        if not all(fits):
            name = self._heard[fits.index(False)].channel
            message = f"its rows are not {width[name]} wide" if name in width else "there is no such channel"
            self._fail(
                f"it sent {fits.count(False)} notifications that fit no channel, the first for {name}: {message}"
            )
            self._heard = [notification for notification, fit in zip(self._heard, fits, strict=True) if fit]

    def _fail(self, sentence: str) -> None:
        self._failures.append(sentence)
        self._over.set()

    def _await(self, progress: Progress | None) -> None:
        """Wait until the system is done, or the time is over."""
        seconds, total = self._plan.seconds, len(self._log.elements)
        until = time.monotonic() + seconds
        # At most until the time limit, never a whole interval beyond it.
        while not self._over.wait(max(0.0, min(_LOOK_S, until - time.monotonic()))):
            if progress is not None:
                progress(self._doing, self._log.done, total)
            if time.monotonic() >= until:
                self._fail(
                    f"at the time limit of {seconds:g} s its step was: {self._doing}, "
                    f"{self._log.done} of {total} publications acknowledged"
                )

    def _end(self) -> None:
        """Close the system, which may hang as well."""
        thread = threading.Thread(
            target=self._guarded, args=(self._system.close, "it could not be closed"), name="sepbm-close", daemon=True
        )
        thread.start()
        # The thread of a system that hangs cannot be ended; as a daemon it does not keep the process alive.
        thread.join(self._plan.closing)
        if thread.is_alive():
            self._fail(f"it was not closed within {self._plan.closing:g} s")

    def _guarded(self, work: Callable[[], object], doing: str = "") -> None:
        try:
            work()
        except Exception as error:
            self._fail(f"{doing or self._doing}: {words_of(error)}")

    def _perform(self) -> None:
        """The steps of a run, in order."""
        self._guarded(self._steps)
        # The base load was frozen for the sequence only; else its garbage would stay until the process ends.
        gc.unfreeze()
        self._over.set()

    def _steps(self) -> None:
        # The base load lives as long as the run, so collections during the sequence need not traverse it.
        with gc_frozen():
            self._prepare()
        self._doing, self._started = "sequence", self._clock()
        self._publish()
        self._doing = "finish"
        if not self._over.is_set():
            self._system.advance(len(self._log.elements))
            self._system.settle()

    def _prepare(self) -> None:
        """Load the base load, and create channels and subscribers."""
        system = self._system
        system.start(self._configuration)
        if system.processes:
            self._sampler = ResourceSampler({"system": system.processes}, clock=self._clock)
            self._sampler.start()
        self._doing = "channels"
        for subscriber in range(self._plan.subscribers):
            for channel in self._channels:
                system.subscribe(channel, self._receiver(subscriber))
        system.settle()

    def _receiver(self, subscriber: int) -> Receive:
        """The callback of a channel's subscriber, numbered from 0."""
        if subscriber == 0:
            return self._heard.append
        # The first subscriber's rows are recorded; of the others, who should get the same, only how many.
        note = self._beside.append

        def hear(heard: ReceivedNotification) -> None:
            rows = len(heard.added) + len(heard.removed)
            note(CountedNotification(heard.channel, subscriber, heard.causes, rows, heard.received))

        return hear

    def _publish(self) -> None:
        """Send the sequence by all publishers, each its share in order; a single one uses this thread."""
        publishers = self._plan.publishers
        # Every n-th publication, so that the publishers are at the same place of the sequence all the time.
        shares = [range(first, len(self._log.elements), publishers) for first in range(publishers)]
        if publishers == 1:
            self._publish_share(shares[0])
            return
        work = [partial(self._publish_share, share) for share in shares if share]
        threads = [threading.Thread(target=self._guarded, args=(part,), daemon=True) for part in work]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _publish_share(self, share: range) -> None:
        system, rate, over = self._system, self._plan.rate, self._over.is_set
        # Without a rate the next publication waits for all notifications of this one, as in the paper.
        if rate is None:
            self._log.feed_settled(system.feed, system.settle, share, over)
        else:
            schedule = Schedule(self._started, 1e9 / rate, self._clock, self._times.sleep)
            self._log.feed_planned(system.feed, zip(share, share, strict=True), schedule, over)


def words_of(error: BaseException) -> str:
    """The message of an exception, with its class unless the message is for users."""
    text = str(error)
    return text if isinstance(error, UnusableSystemError) and text else f"{type(error).__name__}: {text}"


Tell = Callable[[str, float], None]
"""Called with the next step, and the share of steps that are done."""


@dataclass(frozen=True)
class SeriesRun:
    """A run: its folder's name, the configuration's folder, the system with its options, and the plan."""

    name: str
    configuration: Path
    system: str
    options: Mapping[str, str] = field(default_factory=dict)
    plan: RunPlan = field(default_factory=RunPlan)


def run_series(wanted: Iterable[SeriesRun], folder: Path, tell: Tell) -> dict[str, str]:
    """Do the runs that are not recorded yet; returns the errors of failed ones by name."""
    todo = list(wanted)
    lacking: dict[str, str] = {}
    for place, plan in enumerate(todo):
        if is_finished(plan, folder):
            continue
        tell(f"{plan.name} ({place + 1} of {len(todo)} runs)", place / len(todo))
        try:
            # A process for each run: what one leaves in memory, or a crash of its system, does not touch the next.
            with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
                pool.submit(_do, plan, folder).result()
        except (UnusableSystemError, BrokenProcessPool) as error:
            lacking[plan.name] = str(error)
    return lacking


def is_finished(wanted: SeriesRun, folder: Path) -> bool:
    """Whether a run has been recorded."""
    return _store(folder).finished(wanted.name) is not None


def _store(folder: Path) -> RunStore[Path]:
    """The recordings' folders; one with its description is complete."""
    return RunStore(folder, lambda place: place if (place / recordings.ABOUT).exists() else None)


def _do(wanted: SeriesRun, folder: Path) -> None:
    configuration = read(wanted.configuration)
    recorded = run(configuration, wanted.system, wanted.options, wanted.plan)
    _store(folder).add(wanted.name, lambda place: recordings.write(place, recorded, configuration))
