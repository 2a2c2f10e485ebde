"""Metrics as Prometheus reads them (text exposition format 0.0.4)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric: its values by their labels. Of a summary the label "" is what follows its name: _sum or _count."""

    name: str
    kind: Literal["counter", "gauge", "summary"]
    about: str
    values: tuple[tuple[Mapping[str, str], float], ...]


def exposition(metrics: Iterable[Metric]) -> str:
    """All metrics as text."""
    return "".join(_lines(metric) for metric in metrics)


def _lines(metric: Metric) -> str:
    head = f"# HELP {metric.name} {metric.about}\n# TYPE {metric.name} {metric.kind}\n"
    return head + "".join(f"{metric.name}{_labels(labels)} {value:g}\n" for labels, value in metric.values)


def _labels(labels: Mapping[str, str]) -> str:
    pairs = ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items() if name)
    return labels.get("", "") + (f"{{{pairs}}}" if pairs else "")


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
