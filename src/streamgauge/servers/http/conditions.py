"""Conditional requests (RFC 9110, 13.1.1 and 13.1.2) and the entity tags that they are held against.

A tag is a strong validator of exactly the bytes that are sent (RFC 9110, 8.8.3).
"""

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final, TypeAlias

from starlette.responses import JSONResponse, Response

from streamgauge.servers.http.dates import http_date

RawHeaders: TypeAlias = Iterable[tuple[bytes, bytes]]
"""Names in lower case and values, as ASGI has them."""

ANY: Final = ("*",)
_FIELDS: Final = (b"if-match", b"if-none-match")
_MEMBER = re.compile(r'[ \t]*((?:W/)?"[\x21\x23-\x7e\x80-\xff]*")?[ \t]*(?:,|$)')


class ConditionError(ValueError):
    """A header that is no list of entity tags; the sentence says what is expected."""


class PreconditionError(ValueError):
    """A condition that does not hold, so that nothing was done; the sentence says which."""


@dataclass(frozen=True, slots=True)
class Conditions:
    """The demands of a request: entity tags of If-Match and If-None-Match, ``None`` for an absent field."""

    match: tuple[str, ...] | None = None
    none_match: tuple[str, ...] | None = None

    def require(self, tags: Collection[str], target: str) -> None:
        """PreconditionError unless a target with these current ``tags`` is as demanded; without any it is not there.

        If-Match compares strongly (weak tags never match), If-None-Match weakly (RFC 9110, 8.8.3.2).
        """
        if self.match is not None and not _holds(self.match, tags):
            there = "is another by now" if tags else "is not there"
            raise PreconditionError(f"If-Match does not hold: {target} {there}, nothing was done")
        if self.none_match is not None and self.names(tags):
            raise PreconditionError(f"If-None-Match does not hold: {target} is there already, nothing was done")

    def names(self, tags: Collection[str]) -> bool:
        """Whether If-None-Match names one of the current tags: the client has what would be sent."""
        if self.none_match is None:
            return False
        return bool(tags) if self.none_match == ANY else any(_opaque(each) in tags for each in self.none_match)

    def refuse(self, target: str) -> None:
        """PreconditionError for a target without entity tags, of which no condition can hold."""
        for name, said in (("If-Match", self.match), ("If-None-Match", self.none_match)):
            if said is not None:
                raise PreconditionError(
                    f"{target} has no entity tag, so {name} cannot be held against it: nothing was done, leave it out"
                )


UNCONDITIONAL: Final = Conditions()


def read_conditions(headers: RawHeaders) -> Conditions:
    """The conditions of a request; ConditionError for a header that is no list of entity tags."""
    found = [(name, value.decode("latin-1")) for name, value in headers if name in _FIELDS]
    if not found:
        return UNCONDITIONAL
    return Conditions(*(_tags(field.decode(), [value for name, value in found if name == field]) for field in _FIELDS))


def entity_tag(representation: bytes) -> str:
    """The strong validator of a representation."""
    return f'"{blake2b(representation, digest_size=12).hexdigest()}"'


def _holds(wanted: tuple[str, ...], tags: Collection[str]) -> bool:
    return bool(tags) if wanted == ANY else any(each in tags for each in wanted if not each.startswith("W/"))


def _opaque(tag: str) -> str:
    return tag.removeprefix("W/")


def _tags(name: str, lines: list[str]) -> tuple[str, ...] | None:
    """The tags of a field's lines, which are one list together (RFC 9110, 5.3)."""
    if not lines:
        return None
    text = ", ".join(lines)
    if text.strip(" \t") == "*":
        return ANY
    found, position = [], 0
    while position < len(text):
        member = _MEMBER.match(text, position)
        if member is None:
            raise ConditionError(f'{name} is {text!r:.80}: expected * or a list of entity tags, as in "a", "b"')
        found += [member[1]] if member[1] else []
        position = member.end()
    return tuple(found)


def unchanged(validator: bytes, modified: bytes | None, none_match: bytes | None, since: bytes | None) -> bool:
    """Whether a client has the representation of this ``validator``, by If-None-Match, else by If-Modified-Since.

    (RFC 9110, 13.1.2 and 13.1.3; ``modified`` is the representation's Last-Modified, ``since`` the field's value.)
    """
    if none_match is not None:
        tags = [each.strip().removeprefix(b"W/") for each in none_match.split(b",")]
        return validator in tags or tags == [b"*"]
    changed, known = (http_date(None if each is None else each.decode("latin-1")) for each in (modified, since))
    return changed is not None and known is not None and changed <= known


def json_tag(data: Mapping[str, object]) -> str:
    """The entity tag of data as ``tagged_json`` sends it."""
    return entity_tag(bytes(JSONResponse(data).body))


def tagged_json(
    data: Mapping[str, object],
    conditions: Conditions | None = None,
    status: int = 200,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """The data with its tag; for a read, 304 when the client has it; PreconditionError when If-Match does not hold."""
    response = JSONResponse(data, status, dict(headers or {}))
    tag = entity_tag(bytes(response.body))
    response.headers["ETag"] = tag
    if conditions is not None:
        Conditions(conditions.match).require((tag,), "what is read")
        if conditions.names((tag,)):
            return Response(status_code=304, headers={"ETag": tag})
    return response
