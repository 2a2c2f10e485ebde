"""What a client accepts, and the best of what there is (RFC 9110, 12.5)."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from streamgauge.servers.fragments.serving.formats import FORMATS, Format

_WEIGHT = re.compile(r"(?:0(?:\.[0-9]{0,3})?|1(?:\.0{0,3})?)")
_LONGEST = 4000
"""Characters of an Accept header that are looked at."""


@dataclass(frozen=True, slots=True)
class Offer:
    """A format under a media type."""

    format: Format
    type: str


@lru_cache(maxsize=2000)
def accepted(header: str) -> tuple[Offer, ...]:
    """What can be sent to a client, best first; all where it does not say."""
    wishes = _wishes(header[:_LONGEST] or "*/*")
    offers = [Offer(form, name) for form in FORMATS for name in form.types]
    first = {form.name: number for number, form in enumerate(FORMATS)}
    weighed = [(_weight(offer, wishes), offer) for offer in offers]
    order = sorted(weighed, key=lambda pair: (-pair[0], first[pair[1].format.name]))
    return tuple(offer for weight, offer in order if weight > 0)


@lru_cache(maxsize=2000)
def coding(header: str, known: Sequence[str]) -> str:
    """The content coding to send: one of ``known``, in order of preference, or ``identity`` (RFC 9110, 12.5.3)."""
    wishes = dict(_wishes(header[:_LONGEST]))
    weighed = [(wishes.get(name, wishes.get("*", 0.0)), -number, name) for number, name in enumerate(known)]
    weight, _, name = max(weighed, default=(0.0, 0, "identity"))
    return name if weight > 0 and weight >= wishes.get("identity", 0.0) else "identity"


def _wishes(header: str) -> list[tuple[str, float]]:
    """Names and weights; what is not understood weighs nothing."""
    found = []
    for part in header.split(","):
        name, *parameters = (piece.strip().lower() for piece in part.split(";"))
        if name:
            found.append((name, _q(parameters)))
    return found


def _q(parameters: Sequence[str]) -> float:
    given = [value.strip() for name, _, value in (each.partition("=") for each in parameters) if name.strip() == "q"]
    if not given:
        return 1.0
    return float(given[0]) if _WEIGHT.fullmatch(given[0]) else 0.0


def _weight(offer: Offer, wishes: Sequence[tuple[str, float]]) -> float:
    """The weight of the most specific range that holds a media type; other names of a format are only meant by name."""
    kind = offer.type.partition("/")[0]
    ranges = (f"{kind}/*", "*/*") if offer.type == offer.format.types[0] else ()
    for wanted in (offer.type, *ranges):
        weights = [weight for given, weight in wishes if given == wanted]
        if weights:
            return max(weights)
    return 0.0
