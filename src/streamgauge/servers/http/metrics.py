"""Metrics as Prometheus reads them (text exposition format 0.0.4), and those of CPython's garbage collector."""

import gc
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from time import perf_counter
from typing import Any, Final, Literal, TypeAlias

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric: its values by labels. In a summary, the label "" is the suffix of its name, _sum or _count."""

    name: str
    kind: Literal["counter", "gauge", "summary"]
    about: str
    values: tuple[tuple[Mapping[str, str], float], ...]


def exposition(metrics: Iterable[Metric]) -> str:
    """All metrics as text."""
    return "".join(_lines(metric) for metric in metrics)


def _lines(metric: Metric) -> str:
    # The format wants one head per name with all its samples behind it, which is why a metric carries all its values.
    head = f"# HELP {metric.name} {metric.about}\n# TYPE {metric.name} {metric.kind}\n"
    # 15 digits: every integer that a counter reaches is exact, and no 0.1 becomes 0.1000000000000000055.
    return head + "".join(f"{metric.name}{_labels(labels)} {value:.15g}\n" for labels, value in metric.values)


def _labels(labels: Mapping[str, str]) -> str:
    pairs = ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items() if name)
    return labels.get("", "") + (f"{{{pairs}}}" if pairs else "")


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def source_metrics(sources: Mapping[str, Mapping[str, Any]], label: str) -> Iterator[Metric]:
    """Metrics of sources, labelled by what they feed: ``lag`` (ms), ``ended``, ``refused`` items, ``gap``s."""
    measures: tuple[tuple[str, Literal["counter", "gauge"], str, Callable[[Mapping[str, Any]], float]], ...] = (
        ("lag_seconds", "gauge", "The clock less the time of the last element, as it came.", _lag),
        ("ended", "gauge", "1 when a source has ended.", lambda source: bool(source["ended"])),
        ("failed", "gauge", "1 when a source has ended by a fault.", lambda source: bool(source.get("fault"))),
        ("refused_total", "counter", "Items that could not be read.", lambda source: source.get("refused", 0)),
        ("gaps", "gauge", "1 when elements may be missing since the service began.", lambda source: "gap" in source),
    )
    for name, kind, about, value in measures:
        values = tuple(({label: fed}, float(value(source))) for fed, source in sources.items())
        yield Metric(f"streamgauge_source_{name}", kind, about, values)


def _lag(source: Mapping[str, Any]) -> float:
    lag: float = source.get("lag", 0) / 1000
    return lag


Clock: TypeAlias = Callable[[], float]
GENERATIONS: Final = 3

COUNTED_S: Final = 60.0
"""How long (s) a count of frozen objects is reused: CPython visits all of them to count them."""


class Pauses:
    """Counts and times garbage collections from ``begin`` until ``end``. A collection stops all threads."""

    def __init__(self, clock: Clock = perf_counter) -> None:
        self._clock, self._began = clock, 0.0
        self._count, self._sum, self._longest = [0] * GENERATIONS, [0.0] * GENERATIONS, [0.0] * GENERATIONS
        self._frozen: tuple[float, int] | None = None

    def begin(self) -> None:
        """Count from now on; calling it again has no effect."""
        # Several servers in one process share the counts and must not count twice.
        if self._record not in gc.callbacks:
            gc.callbacks.append(self._record)

    def end(self) -> None:
        """Stop counting; the counts are kept."""
        if self._record in gc.callbacks:
            gc.callbacks.remove(self._record)

    def _record(self, phase: str, about: Mapping[str, int]) -> None:
        if phase == "start":
            self._began = self._clock()
            return
        generation, took = about["generation"], self._clock() - self._began
        self._count[generation] += 1
        self._sum[generation] += took
        self._longest[generation] = max(self._longest[generation], took)

    def metrics(self) -> Iterator[Metric]:
        """A summary without quantiles, and the longest pause, by generation."""
        labels = [{"generation": str(generation)} for generation in range(GENERATIONS)]
        name, about = "streamgauge_gc_pause_seconds", "Pauses for CPython's collector of garbage."
        parts = (("_sum", self._sum), ("_count", self._count))
        values = tuple(
            ({**label, "": part}, float(value))
            for part, values in parts
            for label, value in zip(labels, values, strict=True)
        )
        yield Metric(name, "summary", about, values)
        longest = tuple(zip(labels, self._longest, strict=True))
        yield Metric(f"{name}_longest", "gauge", "The longest of these pauses.", longest)
        about = "Objects that it does not look at again, counted at most once a minute."
        yield Metric("streamgauge_gc_frozen_objects", "gauge", about, (({}, float(self._frozen_objects())),))

    def _frozen_objects(self) -> int:
        now = self._clock()
        if self._frozen is None or now - self._frozen[0] >= COUNTED_S:
            self._frozen = now, gc.get_freeze_count()
        return self._frozen[1]


PAUSES: Final = Pauses()
"""The pauses of this process, counted once a server serves."""
