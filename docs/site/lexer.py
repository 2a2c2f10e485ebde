"""Colours of continuous SPARQL: the words of RSP-QL, C-SPARQL, CQELS-QL and SPARQLstream beside SPARQL's own."""

from typing import ClassVar

from pygments.lexer import inherit, words
from pygments.lexers.rdf import SparqlLexer
from pygments.token import Keyword, Literal, Name

WORDS = (
    "REGISTER", "QUERY", "STREAM", "WINDOW", "ON", "RANGE", "STEP", "SLIDE", "TUMBLING", "TRIPLES", "NOW", "ALL",
    "COMPUTED", "EVERY", "RSTREAM", "ISTREAM", "DSTREAM", "TO", "UNTIL",
)  # fmt: skip


class ContinuousSparqlLexer(SparqlLexer):
    """SPARQL with windows: durations, ``${NAME}`` and the clauses of streams."""

    name = "Continuous SPARQL"
    aliases: ClassVar = ["sparql", "rspql"]
    filenames: ClassVar = ["*.rq"]
    tokens: ClassVar = {
        "root": [
            (words(WORDS, prefix=r"(?i)\b", suffix=r"\b"), Keyword),
            (r"P(?:T?[\d.]+[DHMS])+\b", Literal.Date),
            (r"(?i)(?<=QUERY )\w+", Name.Function),
            (r"(?i)\d+\s?(?:ms|s|m|h|d)\b", Literal.Date),
            (r"\$\{\w+\}", Name.Variable),
            inherit,
        ]
    }
