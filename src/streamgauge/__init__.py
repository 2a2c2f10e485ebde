"""Streamgauge: answer, judge and measure continuous queries over RDF."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from streamgauge.watching import awatch, watch

__version__ = "0.1.0"
__all__ = ["awatch", "watch"]


def __getattr__(name: str) -> Any:
    """``watch`` and ``awatch``, loaded when first used."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module("streamgauge.watching"), name)
