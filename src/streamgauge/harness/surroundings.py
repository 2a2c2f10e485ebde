"""What a run ran on: versions and machine, as its header has them."""

import os
import platform
from importlib.metadata import version

import psutil


def versions() -> dict[str, str]:
    """The versions that decide what a run measured."""
    packages = ("streamgauge", "pyspark", "pyoxigraph", "pyarrow")
    return {"python": platform.python_version(), **{name: version(name) for name in packages}}


def machine() -> dict[str, object]:
    """The system, how many processors it has, and its memory in MiB."""
    memory = psutil.virtual_memory().total
    return {"system": platform.platform(), "cpus": os.cpu_count() or 1, "memory_mb": memory >> 20}
