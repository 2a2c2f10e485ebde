"""RDF/XML and N3, whose times are a property; a message is RDF/XML, one graph."""

from typing import Final

import pyoxigraph as ox

from streamgauge.formats.streams.format import Format
from streamgauge.formats.streams.observations import timed_as
from streamgauge.formats.streams.options import STREAM, TIMES, honoured
from streamgauge.formats.streams.quads import decoder
from streamgauge.formats.syntaxes import MEDIA_TYPES

_STATED: Final = honoured(STREAM, TIMES, "parts", "base", "charset", "bad")

FORMATS = (
    Format(
        "rdf",
        "RDF/XML or N3, whose times are a property",
        (".rdf", ".owl", ".rdfs", ".n3"),
        decoder=decoder(ox.RdfFormat.RDF_XML),
        timed=timed_as(None),
        honours={"timed": honoured(_STATED, "context"), "decoder": honoured(_STATED, "time")},
        media_types=MEDIA_TYPES[ox.RdfFormat.RDF_XML],
    ),
)
