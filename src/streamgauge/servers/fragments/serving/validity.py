"""Since when and until when what is written holds, as a request says it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from streamgauge.model.fact import Fact
from streamgauge.model.terms import XSD, Triple
from streamgauge.query.windows import duration
from streamgauge.servers.fragments.labelling import LabelError, instant
from streamgauge.servers.fragments.style import Label

NAMES: Final[tuple[str, ...]] = ("from", "until", "for")
"""The parameters that say it."""


class ValidityError(ValueError):
    """A time that is none, or that a label can't say; the sentence says what to write."""


@dataclass(frozen=True, slots=True)
class Validity:
    """[initial, final) of the facts of a request, ms; both ``None``: they hold always."""

    initial: int | None = None
    final: int | None = None

    def facts(self, triples: Iterable[Triple]) -> list[Fact]:
        """The triples as facts."""
        return [Fact(triple, self.initial, self.final) for triple in triples]


def validity(given: Mapping[str, str], label: Label, now: int) -> Validity:
    """What ``from``, ``until`` and ``for`` say at ``now`` (ms); without ``from`` intervals begin now."""
    if "until" in given and "for" in given:
        raise ValidityError("until and for say the same: give one")
    initial = time(given["from"], now) if "from" in given else None
    since = now if initial is None else initial
    final = time(given["until"], now) if "until" in given else None
    if "for" in given:
        final = since + _lasting(given["for"])
    if label is Label.INSTANT and given.keys() & set(NAMES):
        if final is not None:
            raise ValidityError("an instant label says one time: give from, or nothing for now")
        return Validity(since, since + 1)
    if initial is None and final is None:
        return Validity()
    return _checked(Validity(since, final), label, now)


def _checked(said: Validity, label: Label, now: int) -> Validity:
    assert said.initial is not None
    if label is Label.EXPIRATION and said.initial > now:
        raise ValidityError("an expiration label can't say that a fact begins later: write it then, or use intervals")
    if said.final is not None and said.final <= said.initial:
        raise ValidityError(f"it would end ({said.final} ms) before it begins ({said.initial} ms): give a later end")
    return said


def time(text: str, now: int) -> int:
    """Ms of ``now``, of whole ms since 1970, or of an xsd:dateTime with a time zone; ValidityError for others."""
    if text == "now":
        return now
    if text.removeprefix("-").isascii() and text.removeprefix("-").isdigit() and len(text) <= 15:
        return int(text)
    try:
        return instant(f'"{text}"^^<{XSD}dateTime>')
    except LabelError:
        raise ValidityError(f"{text!r:.60} is no time: write now, 2026-11-22T10:00:00Z, or ms since 1970") from None


def _lasting(text: str) -> int:
    lasting = duration(text)
    if not lasting or lasting > 10**15:
        raise ValidityError(f"{text!r:.60} is no duration: write one like 500ms, 10s, 5m, 1h, 1d")
    return lasting
