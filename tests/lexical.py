"""Terms whose value has several lexical forms, for tests of every place that takes terms in, keeps or sends them."""

from typing import Final

from streamgauge.model.terms import XSD, Term, Triple

S, P = "<http://example.org/s>", "<http://example.org/p>"


def typed(lexical: str, kind: str) -> Term:
    return f'"{lexical}"^^<{XSD}{kind}>'


SAME_VALUE: Final[tuple[tuple[Term, ...], ...]] = (
    tuple(typed(text, "integer") for text in ("1", "01", "+1", "001")),
    tuple(typed(text, "decimal") for text in ("1.0", "1.00", "1", "+1.0", "01.0")),
    tuple(typed(text, "decimal") for text in ("1.50", "1.5")),
    tuple(typed(text, "float") for text in ("76.0", "76", "7.6e1", "76.00")),
    tuple(typed(text, "double") for text in ("1e0", "1.0E0", "1", "1.0", "+1")),
    tuple(typed(text, "double") for text in ("INF", "+INF")),
    tuple(typed(text, "double") for text in ("0", "-0", "-0.0", "0e0")),
    tuple(
        typed(text, "dateTime")
        for text in (
            "2020-01-01T00:00:00.000Z",
            "2020-01-01T00:00:00Z",
            "2020-01-01T00:00:00+00:00",
            "2020-01-01T01:00:00+01:00",
            "2019-12-31T24:00:00Z",
        )
    ),
    tuple(typed(text, "date") for text in ("2020-01-01Z", "2020-01-01+00:00")),
    tuple(typed(text, "time") for text in ("10:00:00", "10:00:00.0")),
    tuple(typed(text, "boolean") for text in ("true", "1")),
    tuple(typed(text, "boolean") for text in ("false", "0")),
    tuple(typed(text, "integer") for text in ("42", "042")),
    tuple(typed(text, "duration") for text in ("PT60S", "PT1M", "P0DT1M")),
    tuple(typed("5", kind) for kind in ("integer", "int", "long", "byte", "short", "nonNegativeInteger")),
    tuple(typed("2020-01-01T00:00:00Z", kind) for kind in ("dateTime", "dateTimeStamp")),
)
"""Groups of terms of one value, no two of which are the same term."""

FORMS: Final[tuple[Term, ...]] = tuple(term for group in SAME_VALUE for term in group)
TRIPLES: Final[tuple[Triple, ...]] = tuple(dict.fromkeys((S, P, term) for term in FORMS))
N_TRIPLES: Final = "".join(f"{s} {p} {o} .\n" for s, p, o in TRIPLES)
