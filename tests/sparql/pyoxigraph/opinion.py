"""pyoxigraph's answer to a query over graphs, where it is known to answer as SPARQL defines: a second opinion."""

from collections.abc import Iterable, Sequence

import pyoxigraph as ox

from streamgauge.model import algebra as al
from streamgauge.model.terms import Row, Term, Triple, is_literal
from streamgauge.query.printer import sparql
from streamgauge.semantics.refusal import undefined, volatile
from tests.sparql.pyoxigraph.gaps import shape_gap
from tests.sparql.pyoxigraph.restated import restated
from tests.sparql.pyoxigraph.stored_terms import ContentGaps, Forms


class SecondOpinion:
    """A query to be answered over a default graph and graphs of these names (in brackets)."""

    def __init__(self, form: al.QueryForm, names: Sequence[Term] = ()) -> None:
        self._names = names
        self._never = shape_gap(form, names, occurrences=False) or undefined(form) or volatile(form)
        self._contents = ContentGaps(form)
        self._text = None if self._never else sparql(restated(form))

    def rows(self, graphs: Sequence[Iterable[Triple]]) -> tuple[Row, ...] | None:
        """The rows over the default graph and the named ones; ``None`` where pyoxigraph is not asked."""
        literals = {item for graph in graphs for _, _, item in graph if is_literal(item)}
        forms = None if self._text is None else self._contents.forms(literals)
        if forms is None or self._text is None:
            return None
        store = ox.Store()
        lines = (
            f"{' '.join(triple)} {name} ."
            for name, graph in zip(("", *self._names), graphs, strict=True)
            for triple in graph
        )
        for name in self._names:
            store.add_graph(ox.NamedNode(name[1:-1]))
        store.load("\n".join(lines).encode(), format=ox.RdfFormat.N_QUADS)
        result = store.query(self._text)
        if isinstance(result, ox.QueryBoolean):
            return ((f'"{str(bool(result)).lower()}"^^<http://www.w3.org/2001/XMLSchema#boolean>',),)
        if isinstance(result, ox.QueryTriples):
            parts = ((entry.subject, entry.predicate, entry.object) for entry in result)
            return tuple(dict.fromkeys(self._written(part, forms) for part in parts))
        return tuple([self._written(row, forms) for row in result])

    def _written(self, terms: Iterable[object], forms: Forms) -> Row:
        """A row with the literals of the graphs for their stored forms, where they are not computed."""
        plain = self._contents.plain_columns
        return tuple(
            [
                None if term is None else forms.get(text := str(term), text) if plain[at] else str(term)
                for at, term in enumerate(terms)
            ]
        )
