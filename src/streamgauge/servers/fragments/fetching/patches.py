"""What changed in a data set since a version, as its server says it: an RDF Patch."""

from typing import Final

import pyoxigraph as ox

from streamgauge.formats.bounds import check_turtle
from streamgauge.servers.fragments.fetching.cache import Response
from streamgauge.servers.fragments.fetching.contract import Changed, SourceError
from streamgauge.servers.fragments.fetching.documents import Naming
from streamgauge.servers.fragments.quads import Quad

MEDIA_TYPE: Final = "application/rdf-patch"


def changed(response: Response, limit: int) -> Changed:
    """The lines of a patch: ``A`` is there now, ``D`` no longer; SourceError when it is none, or too long."""
    if response.kind != MEDIA_TYPE or response.version is None:
        raise SourceError(response.address, f"is {response.kind or 'of no stated media type'!r}, no patch of a version")
    added, removed = read_lines(response.address, response.body, limit)
    return Changed(added, removed, response.at, response.until, response.version)


def read_lines(address: str, body: bytes, limit: int) -> tuple[tuple[Quad, ...], tuple[Quad, ...]]:
    """What the lines of a patch add and remove; SourceError as ``changed``."""
    rows: dict[str, list[str]] = {"A": [], "D": []}
    for line in body.decode(errors="replace").split("\n"):
        if line[:2] in ("A ", "D "):
            rows[line[0]].append(line[2:])
        elif line and not line.startswith("H "):
            raise SourceError(address, f"has a line that no patch has: {line:.80}")
    if sum(map(len, rows.values())) > limit:
        raise SourceError(address, f"has more than {limit} lines: raise the limit `quads`")
    return _quads(address, rows["A"]), _quads(address, rows["D"])


def _quads(address: str, lines: list[str]) -> tuple[Quad, ...]:
    naming = Naming(address)
    try:
        text = "\n".join(lines)
        check_turtle(text)
        parsed = ox.parse(text, format=ox.RdfFormat.N_QUADS)
        return tuple(map(naming.quad, parsed))
    except (SyntaxError, ValueError) as error:
        raise SourceError(address, f"is no patch: {error}") from error
