"""What feeds the incremental evaluator: windows, later the broker and the fragments client."""

from streamgauge.compute.drivers.window import WindowDriver

__all__ = ["WindowDriver"]
