"""The list of data sets, as RDF and for people."""

from collections.abc import Sequence
from typing import Final

import pyoxigraph as ox

from streamgauge.model.terms import Triple
from streamgauge.servers.fragments.serving.dataset import DataSet
from streamgauge.servers.fragments.serving.formats import Format
from streamgauge.servers.fragments.serving.metadata import Layout, Syntax, dataset_triples, form_triples, written
from streamgauge.servers.fragments.serving.pages import index_page

_SYNTAX: Final = {"t": Syntax.TRIG, "q": Syntax.QUAD_LINES, "l": Syntax.TURTLE, "n": Syntax.LINES}


def listing(base: str, datasets: Sequence[DataSet], form: Format) -> str:
    """All data sets with their forms, in a format."""
    if form.timely:
        return index_page(base, datasets)
    triples = [triple for dataset in datasets for triple in _triples(base, dataset)]
    graph = f"<{base}/#metadata>"
    if form.name in _SYNTAX:
        return written(triples, _SYNTAX[form.name], graph)
    quads = ox.parse(written(triples, Syntax.QUAD_LINES, graph).encode(), format=ox.RdfFormat.N_QUADS)
    return (ox.serialize(quads, format=ox.RdfFormat.STREAMING_JSON_LD) or b"").decode()


def _triples(base: str, dataset: DataSet) -> list[Triple]:
    sizes = dataset.page_size, dataset.largest
    layout = Layout(base, dataset.name, dataset.shape, *sizes, whole=True, previous=False, next=False)
    return dataset_triples(base, dataset.name) + form_triples(layout)
