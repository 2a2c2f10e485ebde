"""The optional packages (extras) of this installation: the modules of each, and the sentence when one is missing.

Code that needs an extra calls ``require`` or ``missing`` before it imports; the command line turns any other import of
a missing one into the same sentence (``missing_for``).
"""

from collections.abc import Mapping
from importlib.util import find_spec
from typing import Final, NamedTuple

from streamgauge.model.mistake import MistakeError


class Extra(NamedTuple):
    """An extra of pyproject.toml: what it is for, its package as people know it, and the modules imported from it."""

    use: str
    package: str
    modules: tuple[str, ...]


EXTRAS: Final[Mapping[str, Extra]] = {
    "columns": Extra("the system columns", "DuckDB", ("duckdb",)),
    "docs": Extra("building the pages of a checkout", "Sphinx", ("sphinx", "myst_parser", "furo")),
    "gtfs": Extra("GTFS-Realtime", "gtfs-realtime-bindings", ("google.transit.gtfs_realtime_pb2",)),
    "kafka": Extra("Kafka", "confluent-kafka", ("confluent_kafka",)),
    "mcp": Extra("streamgauge mcp", "the protocol's SDK", ("mcp.server",)),
    "mqtt": Extra("MQTT", "paho-mqtt", ("paho.mqtt.client",)),
    "names": Extra("the census of names", "the package names", ("names",)),
    "plots": Extra("drawing plots", "vl-convert", ("vl_convert",)),
    "spark": Extra("Spark", "PySpark", ("pyspark", "py4j")),
}


class MissingExtraError(MistakeError, ImportError):
    """An optional package is not installed; the sentence has the command that installs it."""


def command(extra: str) -> str:
    """The command that installs an extra."""
    return f"pip install 'streamgauge[{extra}]'"


def missing(extra: str) -> str:
    """The sentence about an extra that is not installed; empty if it is. None of its modules is imported."""
    use, package, modules = EXTRAS[extra]
    return "" if all(map(importable, modules)) else f"{use} needs {package}: {command(extra)}"


def require(extra: str) -> None:
    """MissingExtraError with that sentence, unless the extra is installed."""
    if sentence := missing(extra):
        raise MissingExtraError(sentence)


def missing_for(error: ImportError) -> str:
    """The sentence about the extra whose module an import missed; empty for any other module."""
    # The missing module may be one that the extra's package imports from its own, so the top name decides.
    top = (error.name or "").partition(".")[0]
    for name, extra in EXTRAS.items():
        if top in {module.partition(".")[0] for module in extra.modules}:
            return missing(name)
    return ""


def importable(module: str) -> bool:
    """Whether a module can be found, without importing it."""
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # a package above it
        return False
