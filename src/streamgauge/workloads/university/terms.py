"""The terms that universities are described with: univ-bench's, and foaf's of the Extended Data Set."""

from streamgauge.model.terms import RDF_TYPE, Term, Triple

UB = "http://www.lehigh.edu/~zhp2/2004/0401/univ-bench.owl#"
FOAF = "http://xmlns.com/foaf/0.1/"


def ub(name: str) -> Term:
    """A class or property of univ-bench."""
    return f"<{UB}{name}>"


def foaf(name: str) -> Term:
    """A property of foaf."""
    return f"<{FOAF}{name}>"


def plain(text: str) -> Term:
    """A plain literal; the text has neither quotes nor backslashes."""
    return f'"{text}"'


def typed(subject: Term, name: str) -> Triple:
    """That a resource is of a class of univ-bench."""
    return subject, RDF_TYPE, ub(name)


def university(number: int) -> Term:
    """The IRI of a university, described or only named."""
    return f"<http://www.University{number}.edu>"
