"""Drawn queries over literals of every kind: those of ``tests.sparql.draw`` replaced by drawn ones, in pairs or not."""

from dataclasses import fields, is_dataclass, replace
from typing import Any

from hypothesis import strategies as st

from streamgauge.model.terms import XSD, Term
from tests.sparql import draw

KINDS: dict[str, tuple[str, ...]] = {
    "integer": ("0", "1", "01", "+1", "-1", "2", "9007199254740993", "9223372036854775807", "9223372036854775808"),
    "decimal": ("1.0", "1.50", "1.5", "0.1", "-0.5", "1.", "100000000000000000000.5", "0.1234567890123456789"),
    "float": ("1.0", "1", "1.5E0", "0.1", "16777217", "-0.0", "NaN", "INF"),
    "double": ("1.0", "1e0", "0.1", "-0.0", "NaN", "-INF", "1.0E300"),
    "boolean": ("true", "1", "false"),
    "dateTime": (
        "2020-01-01T00:00:00",
        "2020-01-01T00:00:00Z",
        "2020-01-01T00:00:00.0Z",
        "2020-01-01T01:00:00+01:00",
        "2020-01-01T12:00:00",
        "2019-12-31T24:00:00",
    ),
    "date": ("2020-01-01", "2020-01-01Z"),
    "int": ("1", "2", "3000000000"),
    "string": (),
}
LITERALS: tuple[Term, ...] = (
    '""',
    '"x"',
    '"1"',
    '"x"@en',
    '"x"^^<urn:x:kind>',
    '"y"^^<urn:x:kind>',
    *(f'"{text}"^^<{XSD}{kind}>' for kind, texts in KINDS.items() for text in texts),
)
COMMON: tuple[Term, ...] = tuple(
    f'"{text}"^^<{XSD}{kind}>'
    for kind, texts in (
        ("integer", ("0", "1", "2", "-3")),
        ("decimal", ("1.0", "0.5", "2.25")),
        ("float", ("1.0", "0.1", "76.0")),
    )
    for text in texts
)
"""What streams have mostly."""


def replacements(pool: tuple[Term, ...] = LITERALS) -> st.SearchStrategy[dict[Term, Term]]:
    """What each literal of ``draw`` becomes."""
    olds = (*draw.NUMBERS, *draw.STRINGS)
    return st.tuples(*(st.sampled_from(pool) for _ in olds)).map(lambda news: dict(zip(olds, news, strict=True)))


def replaced(tree: Any, terms: dict[Term, Term]) -> Any:
    """A form, triples or any part of them with other terms."""
    if isinstance(tree, str):
        return terms.get(tree, tree)
    if isinstance(tree, tuple):
        return tuple(replaced(part, terms) for part in tree)
    if is_dataclass(tree) and not isinstance(tree, type):
        return replace(tree, **{field.name: replaced(getattr(tree, field.name), terms) for field in fields(tree)})
    return tree
