"""JSON-LD contexts that are read without a file of theirs, because they are a few facts: GeoJSON-LD's.

Others are named by ``--context IRI=FILE``: a context that is not exactly the published one would drop terms of people's
messages without a word, so those that grow (schema.org, ActivityStreams, NGSI-LD) are not here.
"""

from collections.abc import Mapping
from typing import Any, Final

_GEOMETRIES: Final = "LineString MultiLineString MultiPoint MultiPolygon Point Polygon GeometryCollection"
_TYPES: Final = f"Feature FeatureCollection {_GEOMETRIES}"
_TERMS: Final = f"{_TYPES} geometry properties"
_CONTAINERS: Final = {"bbox": "@list", "coordinates": "@list", "features": "@set"}
_GEOJSON: Final[Mapping[str, Any]] = {
    "geojson": "https://purl.org/geojson/vocab#",
    "id": "@id",
    "type": "@type",
    **{name: f"geojson:{name}" for name in _TERMS.split()},
    **{name: {"@id": f"geojson:{name}", "@container": container} for name, container in _CONTAINERS.items()},
}

BUNDLED: Final[Mapping[str, Mapping[str, Any]]] = {
    f"{scheme}://geojson.org/geojson-ld/geojson-context.jsonld": _GEOJSON for scheme in ("https", "http")
}
"""Contexts by their IRI; a file that ``--context`` names for the same IRI goes before."""
