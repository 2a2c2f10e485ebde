"""The dialect of the 2015 prototype's server: recognised only to say so."""

from typing import Final

from streamgauge.servers.fragments.client.contract import LinkedDataSource, SourceError
from streamgauge.servers.fragments.client.sources import FirstResponse

RANK: Final = 10

_CONTEXT: Final = b"http://www.w3.org/1999/02/22-rdf-syntax-ns#context"
_HYDRA: Final = b"http://www.w3.org/ns/hydra/core#"


async def recognise(first: FirstResponse) -> LinkedDataSource | None:
    """None; SourceError for a form that maps ``rdf:context``, whose pages are Turtle with a fourth term."""
    body = b"" if first.response is None else first.response.body
    if _CONTEXT in body and _HYDRA in body:
        raise SourceError(
            first.address,
            "speaks the dialect of the 2015 prototype (a form with rdf:context, four terms in Turtle), which is not"
            " read: serve the data as Quad Pattern Fragments",
        )
    return None
