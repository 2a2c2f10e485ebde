"""Streamgauge: answer, judge and measure continuous queries over RDF.

Answer: ``for answer in streamgauge.watch(query, stream)`` asks a continuous query and gives its answers as they come;
``async for answer in streamgauge.awatch(query, stream)`` does so in an event loop. An answer has ``instant`` and
``scope`` (ms), ``rows()`` (terms), ``values()`` (native Python values), ``to_arrow()``, ``to_pandas()`` and
``to_polars()``.

Judge: ``streamgauge.expect(query, stream)`` gives the answers that are due; ``streamgauge.load_run(folder)`` reads a
recorded run and ``streamgauge.check(run)`` gives the verdict on it; ``streamgauge.verify(query, stream, answers=...)``
judges answers without a folder. ``streamgauge.timeline`` draws windows and reports. ``streamgauge.testing`` has the
same for tests, with a pytest plugin.

A query is text in any dialect, a file, or a ``ContinuousQuery`` (``parse_query`` reads one). A stream is a file, a URL,
a list of (time in ms, triples), or a dictionary from the stream's IRI to one of these. ``Semantics`` are values;
``profile`` gives one by name. Mistakes that a user can put right are a ``MistakeError`` with one sentence.
``streamgauge.broker`` and ``streamgauge.fragments`` are clients of the servers. Everything is loaded when first used.

>>> query = '''
... SELECT ?s FROM NAMED WINDOW <urn:w> ON <urn:in> [RANGE PT5S STEP PT5S] WHERE { WINDOW <urn:w> { ?s <urn:p> ?o } }'''
>>> [answer.values() for answer in watch(query, [(1000, '<urn:a> <urn:p> "1" .')])]
[[{'s': 'urn:a'}]]

The whole of it is on one page: docs/python.md.
"""

from importlib import import_module
from threading import RLock
from types import FunctionType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from streamgauge.api import Expectations, check, expect, load_run
    from streamgauge.formats.streams import Reading
    from streamgauge.model.answer import Answer, AnswerTable
    from streamgauge.model.element import StreamElement
    from streamgauge.model.mistake import MistakeError
    from streamgauge.model.query import ContinuousQuery
    from streamgauge.model.report import ExpectedReport
    from streamgauge.model.run import Run
    from streamgauge.model.semantics import Semantics
    from streamgauge.model.verdict import Verdict
    from streamgauge.query import parse as parse_query
    from streamgauge.semantics.profiles import profile
    from streamgauge.timelines import TimelinePicture, timeline
    from streamgauge.verification import verify
    from streamgauge.watching import AsyncWatch, Watch, awatch, watch

__version__ = "0.1.0"
__all__ = [
    "Answer",
    "AnswerTable",
    "AsyncWatch",
    "ContinuousQuery",
    "Expectations",
    "ExpectedReport",
    "MistakeError",
    "Reading",
    "Run",
    "Semantics",
    "StreamElement",
    "TimelinePicture",
    "Verdict",
    "Watch",
    "awatch",
    "check",
    "expect",
    "load_run",
    "parse_query",
    "profile",
    "timeline",
    "verify",
    "watch",
]

_HOMES = {
    "Answer": "model.answer",
    "AnswerTable": "model.answer",
    "AsyncWatch": "watching",
    "ContinuousQuery": "model.query",
    "Expectations": "api",
    "ExpectedReport": "model.report",
    "MistakeError": "model.mistake",
    "Reading": "formats.streams",
    "Run": "model.run",
    "Semantics": "model.semantics",
    "StreamElement": "model.element",
    "TimelinePicture": "timelines",
    "Verdict": "model.verdict",
    "Watch": "watching",
    "awatch": "watching",
    "check": "api",
    "expect": "api",
    "load_run": "api",
    "parse_query": "query",
    "profile": "semantics.profiles",
    "timeline": "timelines",
    "verify": "verification",
    "watch": "watching",
}
"""Where each public name is; it is loaded when first used."""


_LOADING = RLock()
"""One thread at a time loads what a name needs: two that met in the midst of packages could break each other off."""


def __getattr__(name: str) -> Any:
    """A public name, loaded when first used."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}: it has {', '.join(__all__)}")
    with _LOADING:
        member = getattr(import_module(f"{__name__}.{_HOMES[name]}"), "parse" if name == "parse_query" else name)
        if isinstance(member, FunctionType):
            member = import_module(f"{__name__}.model.mistake").plain_mistakes(member)
        globals()[name] = member
        return member


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
