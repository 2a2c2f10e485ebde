"""N-Triples text to triples: canonical text is split at spaces, other text is parsed by pyoxigraph, equivalently.

Parsing takes 1.2 us per triple, and serialising the terms as much again. Canonical text consists of terms separated by
spaces, so it suffices to split it and to validate each term. Most terms occur repeatedly (those of vocabularies,
subjects of several triples) and are found in a table. New ones are validated together by a regular expression that
accepts a subset of pyoxigraph's terms: those that it would write unchanged.
"""

import re
from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Final

import pyoxigraph as ox

from streamgauge.formats.bounds import check_turtle
from streamgauge.formats.canonical import to_triples
from streamgauge.formats.line_versions import without_versions
from streamgauge.model.terms import Term, Triple

_CHARACTERS: Final = r"A-Za-z0-9._~!$&'()*+,;=:@\-"
_IRI: Final = (
    rf"<[a-z][a-z0-9+.-]*:(?://[A-Za-z0-9.-]*(?::[0-9]{{1,4}})?(?=[/?#>])|(?!/))(?:[{_CHARACTERS}/]*)"
    rf"(?:\?[{_CHARACTERS}/?]*)?(?:#[{_CHARACTERS}/?]*)?>"
)
_BLANK: Final = r"_:[A-Za-z][A-Za-z0-9]*"
_TYPED: Final = rf"\^\^(?!<http://www\.w3\.org/(?:2001/XMLSchema#string|1999/02/22-rdf-syntax-ns#))(?:{_IRI})"
_LITERAL: Final = rf'"[ !#-\[\]-~\u00a1-\u167f]*"(?:{_TYPED}|@[a-z]{{2,3}}(?:-[a-z]{{2}})?)?'

_RESOURCES: Final = re.compile(rf"(?:(?:{_IRI}|{_BLANK})\n)*")
_IRIS: Final = re.compile(rf"(?:{_IRI}\n)*")
_TERMS: Final = re.compile(rf"(?:(?:{_IRI}|{_BLANK}|{_LITERAL})\n)*")

_END: Final = ".\n"


class KnownTerms(dict[str, Term]):
    """Interned terms of one position in triples, by their text, from which the prefix ``before`` is removed.

    ``fresh`` are added terms that were not validated yet.
    """

    def __init__(self, accepted: re.Pattern[str], before: str = "") -> None:
        super().__init__()
        self._accepted, self._before = accepted, before
        self.fresh: list[str] = []

    def __missing__(self, text: str) -> Term:
        self.fresh.append(text)
        # A line feed stands for a text without the expected beginning: as no term contains one, ``are_terms`` rejects
        # it.
        term = self[text] = text[len(self._before) :] if text.startswith(self._before) else "\n"
        return term

    def are_terms(self, limit: int) -> bool:
        """Whether all fresh texts are terms; otherwise they are removed. Above the limit the table is cleared."""
        fresh, self.fresh = self.fresh, []
        # One match for all new terms: a call for each costs more than the matching.
        together = "\n".join([self[key] for key in fresh])
        # A term with a line feed in it would pass as two terms, so the line feeds are counted.
        sound = together.count("\n") == len(fresh) - 1 and self._accepted.fullmatch(together + "\n") is not None
        # Also where the texts were terms: the table is for terms that recur, and its memory is bounded.
        if len(self) > limit:
            self.clear()
        elif not sound:
            for key in fresh:
                del self[key]
        return sound


class NTriplesReader:
    """Parses N-Triples to canonical triples; caches about ``limit`` terms of each position."""

    def __init__(self, limit: int = 100_000) -> None:
        self._limit = limit
        self._known = KnownTerms(_RESOURCES, _END), KnownTerms(_IRIS), KnownTerms(_TERMS)

    def triples(self, text: bytes) -> tuple[Triple, ...]:
        """The triples of a text, as by ``to_triples`` of pyoxigraph's; SyntaxError, or BoundError for nested terms."""
        parsed = self._split(text)
        if parsed is not None:
            return tuple(parsed)
        check_turtle(text)
        lines = without_versions(text, ox.RdfFormat.N_TRIPLES)
        return to_triples(ox.parse(lines, format=ox.RdfFormat.N_TRIPLES))

    def several(self, texts: Sequence[bytes]) -> list[tuple[Triple, ...]]:
        """The triples of each text, split together if they are canonical; errors as ``triples``."""
        parsed = self._split(b"".join(texts))
        # A text that does not end with its line would be joined with the next one.
        if parsed is None or not all(text.endswith(b" .\n") for text in texts):
            return list(map(self.triples, texts))
        ends = list(accumulate([text.count(b"\n") for text in texts], initial=0))
        return [tuple(parsed[begin:end]) for begin, end in pairwise(ends)]

    def _split(self, text: bytes) -> list[Triple] | None:
        """The triples of a text of canonical lines and terms; ``None`` for other text."""
        try:
            parts = _parts(_END + text.decode())
        except UnicodeDecodeError:
            return None
        if parts is None:
            return None
        # ``__missing__`` collects new terms meanwhile, so that they are validated once and together.
        columns = [list(map(known.__getitem__, parts[at:-1:3])) for at, known in enumerate(self._known)]
        sound = [not known.fresh or known.are_terms(self._limit) for known in self._known]
        return list(zip(*columns, strict=True)) if all(sound) else None


def _parts(text: str) -> list[str] | None:
    """Text split at spaces, three parts a line: the previous line's end with the subject, predicate, object.

    The last part is the end of a line. ``None`` for lines of another form.
    """
    parts = text.split(" ")
    if parts[-1] != _END:
        return None
    lines = text.count("\n") - 1
    # The common case, no literal with blanks: each line gives exactly three parts.
    if lines and len(parts) == 3 * lines + 1:
        return parts
    # Literals with blanks: at most two splits per line leave the object whole.
    pieces = [part for line in text[:-3].split(" .\n") for part in line.split(" ", 2)]
    # As in the common case, where splitting at blanks leaves each line's end with the next line's subject.
    pieces = [part if at % 3 or not at else _END + part for at, part in enumerate(pieces)]
    return [*pieces, _END] if lines and len(pieces) == 3 * lines else None
