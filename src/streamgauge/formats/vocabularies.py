"""JSON-LD contexts that need no file: small ones that do not change.

Written from the terms that GeoJSON-LD and the Activity Vocabulary (https://www.w3.org/TR/activitystreams-vocabulary/,
with ActivityPub's properties of actors) publish. A context that differs from the published one would silently drop
terms of messages, so those that grow (schema.org, NGSI-LD, the Thing Description) are not bundled; users name their
files by ``--context IRI=FILE``.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

_KEYWORDS: Final = {"id": "@id", "type": "@type"}
Context = Mapping[str, Any]


def _terms(prefix: str, names: str) -> dict[str, Any]:
    """The term definitions of names in a vocabulary."""
    return {name: f"{prefix}:{name}" for name in names.split()}


def _of_type(prefix: str, names: str, kind: str) -> dict[str, Any]:
    """The term definitions of properties whose values are IRIs (``@id``) or of a datatype."""
    return {name: {"@id": f"{prefix}:{name}", "@type": kind} for name in names.split()}


_GEOMETRIES: Final = "LineString MultiLineString MultiPoint MultiPolygon Point Polygon GeometryCollection"
_CONTAINERS: Final = {"bbox": "@list", "coordinates": "@list", "features": "@set"}
_GEOJSON: Final[Context] = {
    "geojson": "https://purl.org/geojson/vocab#",
    **_KEYWORDS,
    **_terms("geojson", f"Feature FeatureCollection {_GEOMETRIES} geometry properties"),
    **{name: {"@id": f"geojson:{name}", "@container": container} for name, container in _CONTAINERS.items()},
}

_ACTIVITIES: Final = (
    "Accept Activity Add Announce Arrive Block Create Delete Dislike Flag Follow Ignore IntransitiveActivity Invite "
    "Join Leave Like Listen Move Offer Question Read Reject Remove TentativeAccept TentativeReject Travel Undo Update "
    "View"
)
_ACTORS: Final = "Application Group Organization Person Service"
_OBJECTS: Final = (
    "Article Audio Collection CollectionPage Document Event Image IsContact IsFollowedBy IsFollowing IsMember Link "
    "Mention Note Object OrderedCollection OrderedCollectionPage Page Place Profile Relationship Tombstone Video"
)
_TEXTS: Final = "content hreflang mediaType name preferredUsername rel source summary units"
_RELATIONS: Final = (
    "Public actor alsoKnownAs anyOf attachment attributedTo audience bcc bto cc context current describes endpoints "
    "first followers following formerType generator href icon image inReplyTo instrument items last liked likes "
    "location next oauthAuthorizationEndpoint oauthTokenEndpoint object oneOf origin outbox partOf prev preview "
    "provideClientKey proxyUrl relationship replies result sharedInbox shares signClientKey streams subject tag target "
    "to uploadMedia url"
)
_ACTIVITY_STREAMS: Final[Context] = {
    "as": "https://www.w3.org/ns/activitystreams#",
    "ldp": "http://www.w3.org/ns/ldp#",
    "vcard": "http://www.w3.org/2006/vcard/ns#",
    "xsd": "http://www.w3.org/2001/XMLSchema#",
    **_KEYWORDS,
    **_terms("as", f"{_ACTIVITIES} {_ACTORS} {_OBJECTS} {_TEXTS}"),
    **_of_type("as", _RELATIONS, "@id"),
    **_of_type("as", "closed deleted endTime published startTime updated", "xsd:dateTime"),
    **_of_type("as", "accuracy altitude latitude longitude radius", "xsd:float"),
    **_of_type("as", "height startIndex totalItems width", "xsd:nonNegativeInteger"),
    **_of_type("as", "duration", "xsd:duration"),
    **_of_type("ldp", "inbox", "@id"),
    **{f"{name}Map": {"@id": f"as:{name}", "@container": "@language"} for name in ("content", "name", "summary")},
    "orderedItems": {"@id": "as:items", "@type": "@id", "@container": "@list"},
}


def _known_by(context: Context, iris: Iterable[str]) -> dict[str, Context]:
    return {f"{scheme}://{iri}": context for scheme in ("https", "http") for iri in iris}


BUNDLED: Final[Mapping[str, Context]] = {
    **_known_by(_GEOJSON, ("geojson.org/geojson-ld/geojson-context.jsonld",)),
    **_known_by(_ACTIVITY_STREAMS, ("www.w3.org/ns/activitystreams", "www.w3.org/ns/activitystreams.jsonld")),
}
"""Contexts by IRI; a file that ``--context`` names for the same IRI takes precedence."""

ELSEWHERE: Final[Mapping[str, str]] = dict.fromkeys(
    _known_by({}, ("schema.org", "schema.org/")), "https://schema.org/docs/jsonldcontext.jsonld"
)
"""The addresses of context files whose IRI serves other documents."""
