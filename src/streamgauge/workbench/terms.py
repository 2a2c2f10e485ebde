"""Terms and times for people: prefixed names, literals without their syntax, instants in UTC."""

import re
from datetime import UTC, datetime
from decimal import Decimal
from functools import lru_cache, partial
from typing import Final, NamedTuple

from streamgauge.formats.streams.properties import shortened
from streamgauge.model.tabular import native
from streamgauge.model.terms import Term, by_parts, is_iri, is_literal, lexical, plain

LONGEST: Final = 300
"""Characters of a cell."""

FULL: Final = 1_000
"""Characters of a term that are shown where one points at its cell."""

SECONDS_ONLY: Final = 10**11
"""Times (ms) below this one, of 1973, are shown as seconds: they count from the beginning of a recording."""

_PREFIX: Final = re.compile(r"\bPREFIX\s+([\w.-]*)\s*:\s*<([^<>\"\s]{1,300})>", re.IGNORECASE)


@lru_cache(maxsize=20_000)
def shown_term(term: Term | None, prefixes: tuple[tuple[str, str], ...] = ()) -> str:
    """A term for people: an IRI by a prefix where one is known, a literal without quotes and datatype."""
    if term is None:
        return ""
    text = by_parts(term, partial(_short, prefixes=dict(prefixes)))
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}\N{HORIZONTAL ELLIPSIS}"


def plain_term(term: Term | None) -> str:
    """A term as in the CSV results of SPARQL 1.1: an IRI or the text of a literal alone, empty where unbound."""
    return "" if term is None else plain(term)


class ShownCell(NamedTuple):
    """A term in a cell: its text, and all of it where the text leaves something out, else nothing."""

    text: str
    full: str


@lru_cache(maxsize=20_000)
def shown_cell(term: Term | None, prefixes: tuple[tuple[str, str], ...] = ()) -> ShownCell:
    """A term for people as ``shown_term`` has it; a number that has a fraction has at most four digits of it."""
    text = shown_term(term, prefixes)
    if term is None:
        return ShownCell(text, "")
    whole = lexical(term) if is_literal(term) else term
    value = native(term)
    if isinstance(value, float | Decimal):
        text = _rounded(value, whole)
    return ShownCell(text, "" if whole in (text, f"<{text}>") else whole[:FULL])


def _rounded(value: float | Decimal, written: str) -> str:
    """A fractional number in everyday notation; very large or small numbers, and other text, unchanged."""
    size = abs(float(value))
    if not (size == 0 or 1e-4 <= size < 1e15):
        return written
    text = f"{value:.4f}" if size >= 1 else f"{value:.4g}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _short(term: Term, prefixes: dict[str, str]) -> str:
    if is_literal(term):
        tag = term[term.rfind('"') + 1 :]
        if "--" in tag and tag.startswith("@"):
            return f'"{lexical(term)}"{tag}'  # the quotes part what runs in this direction from its tag
        return lexical(term) + (f" {tag}" if tag.startswith("@") else "")
    return shortened(term, prefixes) if is_iri(term) else term


def declared_prefixes(query: str) -> dict[str, str]:
    """The prefixes that the text of a query declares."""
    return dict(_PREFIX.findall(query))


def shown_time(ms: int | None) -> str:
    """A time for people: seconds of a recording, or the instant in UTC; nothing for none."""
    if ms is None:
        return ""
    if abs(ms) < SECONDS_ONLY:
        return f"{ms / 1000:,.10g} s"
    try:
        text = datetime.fromtimestamp(ms / 1000, UTC).isoformat(sep=" ", timespec="milliseconds")
    except (ValueError, OverflowError, OSError):
        return f"{ms:,} ms"
    return text.replace("+00:00", "").removesuffix(".000")
