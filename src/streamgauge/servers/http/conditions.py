"""Conditional requests (RFC 9110, 13.1.1 and 13.1.2): If-Match and If-None-Match, held against current entity tags."""

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final, TypeAlias

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
    """What a request demands of its target: entity tags of If-Match and If-None-Match, ``None`` where it says none."""

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
