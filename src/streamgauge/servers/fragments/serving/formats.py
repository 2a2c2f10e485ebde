"""Pages in the formats that clients read."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

import pyoxigraph as ox

from streamgauge.servers.fragments.quads import Quad
from streamgauge.servers.fragments.serving.metadata import Syntax
from streamgauge.servers.fragments.serving.pages import fragment_page
from streamgauge.servers.fragments.serving.view import View


@dataclass(frozen=True, slots=True)
class Format:
    """A format: its name in validators, its media types, how a page is written in it; ``triple_terms`` if it has them.

    ``timely``: what is written tells when facts end, and not only what they are.
    """

    name: str
    types: tuple[str, ...]
    write: Callable[[View], str]
    triple_terms: bool = True
    timely: bool = False


def _trig(view: View) -> str:
    """Data in its graphs, the metadata in one of its own."""
    return view.metadata(Syntax.TRIG) + _graphs(view.quads())


def _graphs(quads: Iterable[Quad]) -> str:
    parts: dict[str, list[str]] = {}
    for s, p, o, g in quads:
        parts.setdefault(g, []).append(f"{s} {p} {o} .\n")
    return "".join(f"{g} {{\n{''.join(lines)}}}\n" if g else "".join(lines) for g, lines in parts.items())


def _nquads(view: View) -> str:
    return view.metadata(Syntax.QUAD_LINES) + "".join(
        [f"{s} {p} {o} {g} .\n" if g else f"{s} {p} {o} .\n" for s, p, o, g in view.quads()]
    )


def _turtle(view: View) -> str:
    """Data and metadata together, graphs left out."""
    return view.metadata(Syntax.TURTLE) + _triples(view)


def _ntriples(view: View) -> str:
    return view.metadata(Syntax.LINES) + _triples(view)


def _triples(view: View) -> str:
    return "".join(dict.fromkeys(f"{s} {p} {o} .\n" for s, p, o, _ in view.quads()))


def _json_ld(view: View) -> str:
    quads = ox.parse(_nquads(view).encode(), format=ox.RdfFormat.N_QUADS)
    text = ox.serialize(quads, format=ox.RdfFormat.STREAMING_JSON_LD)
    return text.decode() if text is not None else ""


FORMATS: Final = (
    Format("t", ("application/trig", "application/x-trig"), _trig),
    Format("q", ("application/n-quads", "text/x-nquads"), _nquads),
    Format("l", ("text/turtle", "application/x-turtle", "text/n3"), _turtle),
    Format("n", ("application/n-triples",), _ntriples),
    Format("j", ("application/ld+json", "application/json"), _json_ld, triple_terms=False),
    Format("h", ("text/html", "application/xhtml+xml"), fragment_page, timely=True),
)
"""In the order in which the server prefers them."""
