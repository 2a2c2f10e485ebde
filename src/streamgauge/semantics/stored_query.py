"""One query asked again and again over facts that come and go in a store of pyoxigraph's.

The store keeps values, facts are terms: ``StoredQuery.forms`` says what to put back in the store's answer, or that the
algebra is to be evaluated over the facts themselves (see ``pyoxigraph_gaps``).
"""

import re
from collections.abc import Collection, Iterable, Iterator, Set
from typing import Final

import pyoxigraph as ox

from streamgauge.model import algebra as al
from streamgauge.model.terms import Row, Term
from streamgauge.query.printer import sparql
from streamgauge.query.traversal import expression_parts, parts, with_pattern
from streamgauge.semantics.pyoxigraph_gaps import ContentGaps, Forms, shape_gap, volatile
from streamgauge.semantics.restated import restated

_PLAIN_PATTERN: Final = re.compile(r'"\^?(?:[A-Za-z0-9 @_-]*|\([A-Za-z0-9 @_|-]*\)[A-Za-z0-9 @_-]*)\$?"')
"""Regular expressions that mean the same in XPath (F&O 3.1, 5.6.1) and in pyoxigraph: letters, and one choice."""


def store_gap(form: al.QueryForm, graphs: Collection[Term] = ()) -> str | None:
    """``shape_gap`` over these graphs; REGEX with a plain pattern is no gap, it is as exact as CONTAINS."""
    return shape_gap(with_pattern(form, _with_plain_tests(form.pattern)), graphs, occurrences=False)


def _with_plain_tests(pattern: al.Pattern) -> al.Pattern:
    return parts(pattern, _with_plain_tests, _plain_test)


def _plain_test(tree: al.Expression) -> al.Expression:
    match tree:
        case al.Call(operator="REGEX", arguments=(_, str(pattern))) if _PLAIN_PATTERN.fullmatch(pattern):
            return al.Call("CONTAINS", tree.arguments)
        case _:
            return expression_parts(tree, _with_plain_tests, _plain_test)


class StoredQuery:
    """A SELECT or ASK to be answered over stored facts: its text for pyoxigraph, and where pyoxigraph is not asked."""

    def __init__(self, form: al.Select | al.Ask, graphs: Collection[Term] = ()) -> None:
        """``graphs`` are the names of the named graphs."""
        self.form, self.text = form, sparql(restated(form))
        self._volatile = volatile(form) is not None
        self._gap = None if self._volatile else store_gap(form, graphs)
        self._contents = ContentGaps(form)

    def forms(self, literals: Set[Term]) -> Forms | None:
        """The literals to put back over facts with these literals; ``None``: evaluate the algebra instead."""
        if self._volatile:
            return {}
        return None if self._gap is not None else self._contents.forms(literals)

    def rows(self, solutions: Iterable[ox.QuerySolution], forms: Forms) -> Iterator[Row]:
        """Solutions of pyoxigraph's, with the literals that the facts have."""
        plain = self._contents.plain_columns
        width = range(len(plain))
        if not forms:
            for solution in solutions:
                cells = [solution[at] for at in width]
                yield tuple([None if cell is None else str(cell) for cell in cells])
            return
        for solution in solutions:
            yield tuple([_text(solution[at], forms if plain[at] else {}) for at in width])


def _text(term: object, forms: Forms) -> str | None:
    return None if term is None else forms.get(text := str(term), text)
