"""Streamgauge in the tests of other projects: assertions, streams, sessions, servers, conformance (docs/ci.md).

Each name is loaded at its first use. The pytest plugin (``plugin``) provides the same as fixtures.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from streamgauge.testing.assertions import assert_right
    from streamgauge.testing.sessions import RecordedSession
    from streamgauge.testing.streams import StreamBuilder

__all__ = ["RecordedSession", "StreamBuilder", "assert_right"]

_HOMES = {"StreamBuilder": "streams", "RecordedSession": "sessions", "assert_right": "assertions"}


def __getattr__(name: str) -> Any:
    """A public name, loaded when first used."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}: it has {', '.join(__all__)}")
    value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    # A module's ``__getattr__`` is only called for names that the module lacks (PEP 562).
    globals()[name] = value
    return value
