"""Watching: continuous queries asked from Python; answers are iterated over as they come (docs/watching.md)."""

from streamgauge.watching.asked import WatchError
from streamgauge.watching.asynchronous import AsyncWatch
from streamgauge.watching.origin import Options, awatch, watch
from streamgauge.watching.watch import Watch

__all__ = ["AsyncWatch", "Options", "Watch", "WatchError", "awatch", "watch"]
