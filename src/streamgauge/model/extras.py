"""The optional packages (extras) of this installation: the modules of each, and the sentence when one is missing.

A door that needs an extra calls ``require`` or ``missing`` before it imports; the command line turns any other import
of a missing one into the same sentence (``missing_for``).
"""

from collections.abc import Mapping
from importlib.util import find_spec
from typing import Final, NamedTuple

from streamgauge.model.mistake import MistakeError


class Extra(NamedTuple):
    """An extra of pyproject.toml: its package as people know it, and the modules that are imported from it."""

    package: str
    modules: tuple[str, ...]


EXTRAS: Final[Mapping[str, Extra]] = {
    "columns": Extra("DuckDB", ("duckdb",)),
    "docs": Extra("Sphinx", ("sphinx", "myst_parser", "furo")),
    "gtfs": Extra("gtfs-realtime-bindings", ("google.transit.gtfs_realtime_pb2",)),
    "kafka": Extra("confluent-kafka", ("confluent_kafka",)),
    "mcp": Extra("the protocol's SDK", ("mcp.server",)),
    "mqtt": Extra("paho-mqtt", ("paho.mqtt.client",)),
    "names": Extra("the package names", ("names",)),
    "plots": Extra("vl-convert", ("vl_convert",)),
    "spark": Extra("PySpark", ("pyspark", "py4j")),
}


class MissingExtraError(MistakeError, ImportError):
    """An optional package is not installed; the sentence has the line that installs it."""


def line(extra: str) -> str:
    """The command that installs an extra."""
    return f"pip install 'streamgauge[{extra}]'"


def missing(extra: str, use: str) -> str:
    """The sentence that ``use`` needs an extra that is not installed; empty where it is. Nothing large is imported."""
    package, modules = EXTRAS[extra]
    return "" if all(map(_is_there, modules)) else f"{use} needs {package}: {line(extra)}"


def require(extra: str, use: str) -> None:
    """MissingExtraError with that sentence, unless the extra is installed."""
    if sentence := missing(extra, use):
        raise MissingExtraError(sentence)


def missing_for(error: ImportError) -> str:
    """The sentence about the extra whose module an import missed; empty for any other module."""
    top = (error.name or "").partition(".")[0]
    for name, extra in EXTRAS.items():
        if top in {module.partition(".")[0] for module in extra.modules}:
            return missing(name, "this")
    return ""


def _is_there(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # a package above it
        return False
