"""Drawn terms of RDF 1.2, for tests of every place that takes terms in, keeps or sends them.

Texts and IRIs have in them what the syntaxes end terms by: ``)>>``, ``<<(``, quotes, dots, tags, directions.
"""

from itertools import count
from typing import Final

from hypothesis import strategies as st

from streamgauge.model.terms import XSD, Term, Triple, quoted, triple_term, with_blank_nodes

IRIS: Final = st.sampled_from(
    ["<urn:a>", "<urn:b)>", "<urn:(c>", "<http://ex.org/d#é?f=g>", "<http://ex.org/a.>", "<urn:x:--ltr>", "<urn:@en>"]
)
BLANK: Final = st.sampled_from(["_:b", "_:c1", "_:D2e"])
_MARKS: Final = st.sampled_from(
    [".", "<<(", ")>>", '"', "\\", "@en--ltr", "^^<urn:d>", "_:b", "<urn:a>", "{|", "|}", "~"]
)
_CHARACTERS: Final = st.sampled_from(
    [" ", " .\n", "\t", "\r", "\x01", "\x7f", "\u0085", "\u2028", "\ufeff", "\U0001f600"]
)
_WORDS: Final = st.sampled_from(["שלום", "é", "x", ",", "'", "\\u0041", "%20", "&amp;", "<b>", "--"])
TEXTS: Final = st.lists(_MARKS | _CHARACTERS | _WORDS, max_size=4).map("".join)
_TAGS: Final = st.sampled_from(["@en", "@he", "@en-gb", "@zh-hant-tw", "@en--ltr", "@he--rtl", "@zh-hant-tw--ltr"])
_TYPES: Final = st.sampled_from(["", f"^^<{XSD}integer>", f"^^<{XSD}dateTime>", "^^<urn:d>"])
LITERALS: Final = st.builds(lambda text, mark: quoted(text) + mark, TEXTS, _TAGS | _TYPES)
OBJECTS: Final = st.recursive(
    IRIS | BLANK | LITERALS,
    lambda items: st.builds(lambda *parts: triple_term(parts), IRIS | BLANK, IRIS, items),
    max_leaves=3,
)
TRIPLES: Final = st.lists(st.tuples(IRIS | BLANK, IRIS, OBJECTS), min_size=1, max_size=5, unique=True).map(tuple)


def has_direction(term: Term) -> bool:
    """Whether a text with a base direction is in a term, by its last part: no subject or predicate is a literal."""
    return term.rstrip(" )>").endswith(("--ltr", "--rtl")) and '"' in term and not term.endswith("--ltr>")


def anonymous(triples: tuple[Triple, ...]) -> tuple[Triple, ...]:
    """Triples with blank nodes named in the order in which they appear."""
    numbers = count()
    names: dict[Term, Term] = {}

    def name(blank: Term) -> Term:
        if blank not in names:
            names[blank] = f"_:n{next(numbers)}"
        return names[blank]

    return tuple((with_blank_nodes(s, name), p, with_blank_nodes(o, name)) for s, p, o in triples)
