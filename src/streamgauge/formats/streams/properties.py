"""Names of properties: IRIs, or prefixed names with the well-known prefixes or a query's own."""

import re
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Final

from streamgauge.model.terms import Term

PREFIXES: Final[dict[str, str]] = {
    "as": "https://www.w3.org/ns/activitystreams#",
    "dc": "http://purl.org/dc/elements/1.1/",
    "dcterms": "http://purl.org/dc/terms/",
    "dct": "http://purl.org/dc/terms/",
    "foaf": "http://xmlns.com/foaf/0.1/",
    "geo": "http://www.w3.org/2003/01/geo/wgs84_pos#",
    "om-owl": "http://knoesis.wright.edu/ssw/ont/sensor-observation.owl#",
    "owl": "http://www.w3.org/2002/07/owl#",
    "prov": "http://www.w3.org/ns/prov#",
    "qudt": "http://qudt.org/schema/qudt/",
    "rdf": "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
    "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
    "saref": "https://saref.etsi.org/core/",
    "schema": "http://schema.org/",
    "skos": "http://www.w3.org/2004/02/skos/core#",
    "sosa": "http://www.w3.org/ns/sosa/",
    "ssn": "http://www.w3.org/ns/ssn/",
    "time": "http://www.w3.org/2006/time#",
    "xsd": "http://www.w3.org/2001/XMLSchema#",
}
"""Prefixes that need no declaration: those of W3C's initial context for RDFa, and vocabularies of observations."""

_ABSOLUTE: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[^\x00-\x20<>\"{}|^`\\]*")
# Without "//" an IRI looks like a prefixed name; of these schemes it is taken for an IRI all the same.
_SCHEMES: Final = ("urn", "tag", "mailto", "file", "did")


def property_iri(name: str, prefixes: Mapping[str, str]) -> Term:
    """The IRI, in angle brackets, of ``<IRI>``, a plain IRI or a prefixed name; ValueError explains the fault."""
    text = name.strip()
    if text.startswith("<") and text.endswith(">"):
        text = text[1:-1]
        if _ABSOLUTE.fullmatch(text):
            return f"<{text}>"
        raise ValueError(f"{name} is not an absolute IRI")
    prefix, colon, local = text.partition(":")
    space = prefixes.get(prefix, PREFIXES.get(prefix))
    if colon and space is not None:
        return property_iri(f"<{space}{local}>", {})
    if _ABSOLUTE.fullmatch(text) and (local.startswith("//") or prefix in _SCHEMES):
        return f"<{text}>"
    raise ValueError(_unknown(name, prefix if colon else None, prefixes))


def property_path(text: str, prefixes: Mapping[str, str]) -> tuple[Term, ...]:
    """The IRIs of properties joined by ``/``, as ``sosa:phenomenonTime/time:inXSDDateTimeStamp``; ValueError.

    In a path of several, IRIs that contain ``/`` need angle brackets.
    """
    steps = re.findall(r"<[^>]*>|[^/<]+", text) if "<" in text or not _iri(text, prefixes) else [text]
    return tuple(property_iri(step, prefixes) for step in steps)


def shortened(iri: Term, prefixes: Mapping[str, str]) -> str:
    """The prefixed name of an IRI in angle brackets if a prefix is known, else the IRI unchanged."""
    for prefix, space in (*prefixes.items(), *PREFIXES.items()):
        local = iri[1:-1].removeprefix(space)
        if local != iri[1:-1] and re.fullmatch(r"[\w-]+", local):
            return f"{prefix}:{local}"
    return iri


def _iri(text: str, prefixes: Mapping[str, str]) -> bool:
    """Whether a text with ``/`` in it is one IRI or one prefixed name."""
    prefix, _, local = text.partition(":")
    return "/" not in text or (local.startswith("//") and prefix not in prefixes and prefix not in PREFIXES)


def _unknown(name: str, prefix: str | None, prefixes: Mapping[str, str]) -> str:
    if prefix is None:
        return f"{name!r} is not a property: write an IRI or a prefixed name, as sosa:resultTime"
    known = sorted({*prefixes, *PREFIXES})
    close = get_close_matches(prefix, known, 1)
    hint = f"did you mean {close[0]}:?" if close else f"write the IRI in full, or one of {', '.join(known)}"
    return f"unknown prefix {prefix}: in {name}: {hint}"
