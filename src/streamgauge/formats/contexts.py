"""JSON-LD contexts by IRI, embedded into the documents that refer to them, since data never cause requests.

Each context is a file, given for its IRI: ``--context https://example.org/context.jsonld=context.jsonld``. A file
without an IRI is the context of every document, as JSON-LD 1.1 interprets plain JSON (section 6.1).

Two contexts need no file: those of GeoJSON-LD and of the Activity Vocabulary
(https://www.w3.org/TR/activitystreams-vocabulary/, with ActivityPub's properties of actors), written from the terms
that these publish. A context that differs from the published one would silently drop terms of messages, so those that
grow (schema.org, NGSI-LD, the Thing Description) are not bundled.
"""

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import urljoin

from streamgauge.formats.bounds import read_json
from streamgauge.model.mistake import MistakeError, obstacle

WHOLE: Final = ""
"""The key of the context that applies to every document."""

_NAMED: Final = re.compile(rb'"@context"\s*:\s*(?:"|\[)')
_MAX_DEPTH: Final = 8
"""Maximum length of a chain of contexts that refer to each other, which also ends cycles."""


class ContextError(MistakeError, ValueError):
    """A context that is unknown or unreadable; the sentence names it."""


def read_contexts(text: str | None) -> dict[str, Any]:
    """The contexts of ``IRI=FILE,IRI=FILE,FILE``; ContextError."""
    return dict(_context(part.strip()) for part in (text or "").split(",") if part.strip())


def context_files(text: str | None) -> list[Path]:
    """The files that ``read_contexts`` would read."""
    return [Path(part.strip().rpartition("=")[2]) for part in (text or "").split(",") if part.strip()]


def contexts_near(text: str, folder: Path) -> str:
    """The text for ``read_contexts`` with its relative files made relative to a folder."""
    parts = [part.strip().rpartition("=") for part in text.split(",") if part.strip()]
    return ",".join(f"{iri}{equals}{folder / name}" for iri, equals, name in parts)


def _context(text: str) -> tuple[str, Any]:
    # From the right, as an IRI may contain an equals sign.
    iri, _, name = text.rpartition("=")
    try:
        data = read_json(Path(name).read_bytes())
    except OSError as error:
        raise ContextError(f"context: {name}: {obstacle(error)}") from error
    except ValueError as error:
        raise ContextError(f"context: {name}: not JSON: {error}") from error
    return iri.strip("<>"), _content(data, name)


def _content(data: Any, name: str) -> Any:
    if not isinstance(data, dict) or "@context" not in data:
        raise ContextError(f'context: {name}: not a JSON-LD context: expected {{"@context": ...}}')
    return data["@context"]


def embedded(body: bytes, contexts: Mapping[str, Any], base: str | None) -> bytes:
    """A JSON-LD document with the contexts that it refers to embedded; ContextError for an unknown one."""
    whole = contexts.get(WHOLE)
    if whole is None and not _NAMED.search(body):
        return body
    try:
        data = json.loads(body)
    except ValueError:
        return body  # the parser reports the error with its position
    embedding = _Embedding(contexts, base)
    data = embedding.value(data, 0)
    if whole is not None:
        data = _within(data, embedding.context(whole, 0))
    return json.dumps(data).encode()


def _within(data: Any, context: Any) -> Any:
    """A document with ``context`` before the own context of each node."""
    if isinstance(data, list):
        return [_within(node, context) for node in data]
    if not isinstance(data, dict):
        return data
    own = data.get("@context", [])
    outer = context if isinstance(context, list) else [context]
    # Later contexts override earlier ones (JSON-LD 1.1, 3.1), so the document's own comes last.
    return {**data, "@context": [*outer, *(own if isinstance(own, list) else [own])]}


class _Embedding:
    """Replaces references to contexts by their content."""

    def __init__(self, contexts: Mapping[str, Any], base: str | None) -> None:
        self._contexts, self._base = contexts, base

    def value(self, data: Any, depth: int) -> Any:
        """A JSON value with its contexts embedded."""
        if isinstance(data, list):
            return [self.value(item, depth) for item in data]
        if not isinstance(data, dict):
            return data
        return {
            name: self.context(item, depth) if name == "@context" else self.value(item, depth)
            for name, item in data.items()
        }

    def context(self, data: Any, depth: int) -> Any:
        """A context, or a list of them."""
        if isinstance(data, list):
            return [self.context(item, depth) for item in data]
        if isinstance(data, str):
            return self._known(data, depth)
        return self.value(data, depth)

    def _known(self, iri: str, depth: int) -> Any:
        if depth >= _MAX_DEPTH:
            raise ContextError(f"context {iri}: contexts refer to each other in a chain of more than {_MAX_DEPTH}")
        for name in (iri, urljoin(self._base or "", iri)):
            if name in self._contexts:
                return self.context(self._contexts[name], depth + 1)
            if name in BUNDLED:
                # A copy: callers add to the document, and the bundled context must stay as it is.
                return dict(BUNDLED[name])
        place = f"save {ELSEWHERE[iri]}" if iri in ELSEWHERE else "save it"
        raise ContextError(
            f"its context {iri} is not fetched: {place} to a file and name the file with --context {iri}=FILE"
        )


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
