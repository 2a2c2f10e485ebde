"""The queries of the room: registered with their sources, sampled, held, ended. The query service does the work.

Sources are files below the workbench's folder, and brokers at allowed hosts.
"""

import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from os import walk
from pathlib import Path
from threading import Event, RLock, Thread
from typing import Final, NamedTuple
from urllib.parse import urlencode, urlsplit

from streamgauge import engines
from streamgauge.formats.contexts import context_files, contexts_near
from streamgauge.formats.documents import ending
from streamgauge.formats.streams import stream_formats
from streamgauge.model.engine import Engine
from streamgauge.servers.queries.attached import AttachedSources
from streamgauge.servers.queries.catalogue import ConflictError, UnknownQueryError
from streamgauge.servers.queries.limits import QueryLimits
from streamgauge.servers.queries.registered import RegisteredQuery
from streamgauge.servers.queries.registry import Queries
from streamgauge.servers.queries.requests import QueryRegistration
from streamgauge.sources import SourceError
from streamgauge.sources.contract import Address, parse_address
from streamgauge.sources.named import named_source
from streamgauge.workbench.addresses import Lookup, check_host, lookup
from streamgauge.workbench.places import is_path
from streamgauge.workbench.rooms.live.plans import WatchedPlans

MESSAGE: Final = 2**20
"""Bytes that a line or message may have unless a source's option ``limit`` says otherwise."""

LONGEST: Final = 16 * 2**20
"""The most that it may say."""

_FILES: Final = ("csv_mapping", "json_mapping", "ca")
"""Options that name files."""

_LOOKED_AT: Final = 2_000
_LISTED: Final = 40


@dataclass(frozen=True, slots=True)
class SourcePlaces:
    """The places of sources, for the workbench over ``folder``; ``find`` gives the addresses of a host."""

    folder: Path
    find: Lookup = lookup

    def url(self, text: str) -> str:
        """The URL to open for a source as it was typed; SourceError or HostRefusedError say why it is not opened."""
        address = parse_address(text.strip())
        if address.scheme == "-":
            raise SourceError("- is the standard input of the workbench: name a file of its folder, or a broker")
        options = self._options(address)
        if address.scheme == "file":
            return f"{self.inside(address.path.removeprefix('file:'))}?{urlencode(options)}"
        if not address.host:
            raise SourceError(f"{address.text}: names no machine: write {address.scheme}://HOST")
        for host in _hosts(address):
            check_host(host, self.find)
        return urlsplit(text.strip())._replace(query=urlencode(options)).geturl()

    def shown(self, url: str) -> str:
        """A source for people: a file as it lies in the folder, without the bound that was put to it."""
        address = url.removeprefix(f"{self.folder.resolve()}/")
        return address.replace(f"?limit={MESSAGE}", "").replace(f"&limit={MESSAGE}", "")

    def inside(self, path: str) -> Path:
        """A file or folder below the workbench's folder; SourceError for any other, symbolic links followed."""
        root = self.folder.resolve()
        file = (root / path).resolve() if is_path(path) else root.parent
        # A question mark would begin the options of the address that is made of the path.
        if "?" in str(file) or not file.is_relative_to(root):
            raise SourceError(
                f"{path:.100}: only files below the workbench's folder are read: copy or link nothing else"
            )
        if not (file.is_file() or file.is_dir()):
            raise SourceError(f"{path:.100}: there is no such file or folder in {self.folder.name or self.folder}")
        if file.is_dir() and (out := _leads_out(file, root)) is not None:
            raise SourceError(f"{path}: {out} leads out of the workbench's folder")
        return file

    def streams(self) -> list[str]:
        """Files of the folder that are streams by their names, relative to it, sorted; at most forty.

        Files of run folders, and CSV's metadata, belong to other things.
        """
        endings = tuple(ending for stream_format_ in stream_formats().values() for ending in stream_format_.endings)
        seen = islice(_files(self.folder, apart="run.json"), _LOOKED_AT)
        named = [path for path in seen if ending(path) in endings and not path.name.endswith("-metadata.json")]
        return sorted(str(path.relative_to(self.folder)) for path in named)[:_LISTED]

    def _options(self, address: Address) -> dict[str, str]:
        """The options, files in them found below the folder, and a bound for the size of messages."""
        options = dict(address.options)
        for name in _FILES:
            if name in options:
                options[name] = str(self.inside(options[name]))
        for file in context_files(options.get("context")):
            self.inside(str(file))
        if "context" in options:
            options["context"] = contexts_near(options["context"], self.folder.resolve())
        limit = options.setdefault("limit", str(MESSAGE))
        if not limit.isascii() or not limit.isdigit() or not 0 < int(limit[:12]) <= LONGEST:
            raise SourceError(f"{address.text}: option limit is {limit:.20}: expected bytes, at most {LONGEST}")
        return options


def _hosts(address: Address) -> list[str]:
    """Every host that an address names."""
    # A worked example: `brokers=kafka1:9092,[::1]:9093` names kafka1 and ::1.
    more = address.options.get("brokers", "")
    return [address.host, *((part.rpartition(":")[0] or part).strip("[]") for part in more.split(",") if part)]


def _leads_out(folder: Path, root: Path) -> Path | None:
    """A file below a folder that lies elsewhere, through a symbolic link."""
    return next((path for path in _files(folder) if not path.resolve().is_relative_to(root)), None)


def _files(folder: Path, apart: str = "") -> Iterator[Path]:
    """The files below a folder, in order; nothing of folders that have a file called ``apart``."""
    for at, folders, files in walk(folder):
        if apart in files:
            folders.clear()
            continue
        # In place, since ``walk`` descends into what is left in this very list.
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        yield from (Path(at) / name for name in sorted(files))


LIMITS: Final = QueryLimits(
    queries=20,
    static_triples=200_000,
    subscribers=100,
    waiting=20_000,
    kept=1000,
    kept_bytes=8 * 2**20,
    body=4 * 2**20,
    memory=512 * 2**20,
)
"""Bounds of the room: 20 queries, and per query the newest 1,000 answers or 8 MiB of them."""

TICK_S: Final = 0.1
SAMPLE_S: Final = 1.0


SPAN_S: Final = 10.0


class CountSample(NamedTuple):
    """Counts at an instant: ``at`` in seconds of a clock that never goes back."""

    at: float
    elements: int
    answers: int


class RateMeter:
    """Counts of the last ten seconds, sampled now and then."""

    def __init__(self, first: CountSample) -> None:
        self._samples = deque((first,))

    def add(self, sample: CountSample) -> None:
        """Add a sample, and drop those older than the span except the newest of them."""
        samples = self._samples
        samples.append(sample)
        # The second sample decides: as long as it is younger than the span, the first one is needed to measure the
        # whole span.
        while len(samples) > 2 and samples[1].at <= sample.at - SPAN_S:
            samples.popleft()

    def rates(self, now: CountSample) -> tuple[float, float]:
        """Elements and answers per second until now, over at least one second."""
        first = self._samples[0]
        seconds = max(now.at - first.at, SAMPLE_S)
        return (now.elements - first.elements) / seconds, (now.answers - first.answers) / seconds


@dataclass(frozen=True, slots=True)
class QueryActivity:
    """The state of a query: rates per second over the last ten seconds, ``behind`` in ms of wall time.

    ``state`` is running, held (answers are held back), failed, or ended: by request, or because all its sources were
    read; ``time`` (ms) is that of its stream.
    """

    query: RegisteredQuery
    state: str
    elements_per_second: float
    answers_per_second: float
    time: int | None
    behind: int | None

    @property
    def title(self) -> str:
        """The name that the query's text gives it, else the one it was registered under."""
        return self.query.question.query.name or self.query.name


class LiveRegistrations:
    """The queries of a workbench over a folder, with their sources and held answers. Thread-safe.

    ``load`` returns an engine by name, ``clock`` the wall time in ms, ``steady`` monotonic seconds. ``leaving`` is set
    when the workbench stops.
    """

    def __init__(
        self,
        folder: Path,
        load: Callable[[str], Engine] = engines.load,
        limits: QueryLimits = LIMITS,
        clock: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
        steady: Callable[[], float] = time.monotonic,
        leaving: Event | None = None,
    ) -> None:
        self.leaving = leaving or Event()
        self.places = SourcePlaces(folder)
        self._load, self._limits, self._clock, self._steady = load, limits, clock, steady
        self._lock, self._closing, self._holding = RLock(), Event(), RLock()
        self._meters: dict[str, RateMeter] = {}
        self._held: dict[str, int] = {}
        self._wakes: dict[str, list[Callable[[], None]]] = {}
        self._ticker: Thread | None = None
        self.plans = WatchedPlans(steady)

    @cached_property
    def queries(self) -> Queries:
        """The core, with every engine that can be started here."""
        return Queries(self._load, able_engines(), self._limits, self._clock, self._steady)

    @cached_property
    def attached(self) -> AttachedSources:
        """Open the sources, whose URLs were checked earlier."""
        return AttachedSources(self.queries, lambda _url: None)

    def register(self, registration: QueryRegistration, sources: Sequence[str] = ()) -> RegisteredQuery:
        """Answer a query and open its sources, ``SOURCE`` or ``IRI=SOURCE`` each; all of it or nothing.

        Raises what ``Queries.register`` and ``AttachedSources.attach`` do, and SourceError for a source of no stream.
        """
        with self._lock:
            # On first use: a workbench without live queries needs no thread.
            if self._ticker is None:
                self._ticker = Thread(target=self._tick, name="streamgauge-live-room", daemon=True)
                self._ticker.start()
            running = self.queries.register(registration)
            self._meters[running.name] = RateMeter(self._sample(running))
            try:
                opened = [self._place(running, source) for source in sources]
                for stream, url in opened:
                    self._attach(stream, url, running.name)
            # What was opened is closed again: the query is registered with all of its sources or not at all.
            except Exception:
                self.end(running.name)
                raise
            return running

    def attach(self, name: str, source: str) -> None:
        """Open a source for a stream of a query; SourceError, ConflictError."""
        with self._lock:
            stream, url = self._place(self.queries.query(name), source)
            self._attach(stream, url, name)

    def end(self, name: str) -> None:
        """End a query and the sources that no other query reads; UnknownQueryError."""
        with self._lock:
            streams = self.queries.query(name).worker.streams
            self.queries.deregister(name)
            self._meters.pop(name, None)
            self._held.pop(name, None)
            self._wake(name)
            self.plans.leave(name)
            for stream in set(streams) & set(self.attached.status()):
                if not self.queries.readers(stream):
                    self.attached.detach(stream)

    def hold(self, name: str) -> None:
        """Keep a query's answers back; its sources and the query go on. UnknownQueryError."""
        with self._holding:
            # Holding twice keeps the place of the first time.
            self._held.setdefault(name, self.queries.query(name).answers.number)
            self._wake(name)

    def release(self, name: str) -> None:
        """Release a query's answers from where they were held; UnknownQueryError."""
        with self._holding:
            self.queries.query(name)
            self._held.pop(name, None)
            self._wake(name)

    def held_at(self, name: str) -> int | None:
        """The number of the last answer before a query's answers were held; ``None`` if they are not."""
        return self._held.get(name)

    def watch(self, name: str, wake: Callable[[], None]) -> Callable[[], None]:
        """Call ``wake`` when a query's answers are held or released; returns a function that ends this."""
        with self._holding:
            self._wakes.setdefault(name, []).append(wake)

        def leave() -> None:
            with self._holding:
                self._wakes[name].remove(wake)
                if not self._wakes[name]:
                    del self._wakes[name]

        return leave

    def activity(self, name: str) -> QueryActivity:
        """The state of a query now; UnknownQueryError."""
        running = self.queries.query(name)
        sample = self._sample(running)
        meter = self._meters.get(name) or RateMeter(sample)
        elements, answers = meter.rates(sample)
        at = running.time
        return QueryActivity(
            running, self._state(running), elements, answers, at, None if at is None else self._clock() - at
        )

    def _state(self, running: RegisteredQuery) -> str:
        if running.state != "running":
            return running.state
        if running.name in self._held:
            return "held"
        attached = self.attached.status()
        ended = all(attached.get(stream, {}).get("ended") for stream in running.worker.streams)
        return "ended" if ended and not running.question.wall and not running.worker.waiting else running.state

    def activities(self) -> list[QueryActivity]:
        """The states of all queries in the order in which they were registered."""
        activities_ = []
        for running in self.queries.queries():
            try:
                activities_.append(self.activity(running.name))
            except UnknownQueryError:
                continue  # ended meanwhile
        return activities_

    def close(self) -> None:
        """End all queries and sources."""
        self._closing.set()
        if self._ticker is not None:
            self._ticker.join()
            self.attached.close()
            self.queries.close("the workbench has ended")

    def _place(self, running: RegisteredQuery, text: str) -> tuple[str, str]:
        """The stream that a source is for, and the URL to open."""
        source, streams = named_source(text.strip()), running.worker.streams
        read = " and ".join(f"<{stream}>" for stream in streams)
        if source.iri is None and len(streams) > 1:
            raise SourceError(f"{text.strip()}: the query reads {read}: write IRI=SOURCE to say which of them it is")
        if source.iri is not None and source.iri not in streams:
            raise SourceError(f"{source.address} is said to be <{source.iri}>, but the query reads {read}")
        return source.iri or streams[0], self.places.url(source.address)

    def _attach(self, stream: str, url: str, name: str) -> None:
        known = self.attached.status().get(stream)
        others = [reader for reader in self.queries.readers(stream) if reader != name]
        if known is not None and known["ended"] and others:
            raise ConflictError(
                f"<{stream}> came from {known['source']} until its end, and {others[0]} has read it: end {others[0]} "
                "first, or name the stream otherwise"
            )
        self.attached.attach(stream, url)

    def _sample(self, running: RegisteredQuery) -> CountSample:
        return CountSample(self._steady(), running.elements, running.answers.number)

    def _wake(self, name: str) -> None:
        with self._holding:
            for wake in self._wakes.get(name, ()):
                wake()

    def _tick(self) -> None:
        """Time passes for queries by the wall clock, and counts are sampled once a second."""
        sampled = self._steady()
        while not self._closing.wait(TICK_S):
            self.queries.tick()
            if self._steady() - sampled >= SAMPLE_S:
                sampled = self._steady()
                self.plans.expire()
                for running in self.queries.queries():
                    if (meter := self._meters.get(running.name)) is not None:
                        meter.add(self._sample(running))


OWN: Final = "live"
_ELSEWHERE: Final = ("broker", "fragments")
"""Engines that are servers of this project behind the contract: the room Servers is for those."""


def able_engines() -> tuple[str, ...]:
    """The engines available here: built-in ones, and prepared external programs."""
    return (OWN, *(name for name in engines.names() if name not in (OWN, *_ELSEWHERE) and _prepared(name)))


def _prepared(name: str) -> bool:
    try:
        return engines.command(engines.load(name)) is not None
    except (engines.EngineError, ImportError):
        return False
