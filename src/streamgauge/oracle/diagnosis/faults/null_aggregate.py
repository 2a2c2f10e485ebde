"""An aggregate over nothing returns a word, such as null (SPARQLstream on CSRBench's query 4)."""

from collections.abc import Iterator
from functools import partial

from streamgauge.model.semantics import EmptyAggregate
from streamgauge.model.terms import Term
from streamgauge.model.verdict import Part
from streamgauge.oracle.diagnosis.models import Case, Fault, Rows, Seen
from streamgauge.oracle.worlds.intervals import finite
from streamgauge.oracle.worlds.restatement import computed_columns

MAX_WORDS = 3
"""Words that are tried."""


def proposals(seen: Seen) -> Iterator[Fault]:
    """A fault for each word recorded in place of a number, at most ``MAX_WORDS``."""
    computed = computed_columns(seen.case.query.form)
    words = {
        term
        for row in seen.all_rows()
        for at, term in enumerate(row)
        if at in computed and term is not None and term.startswith('"') and finite(term) is None
    }
    for word in sorted(words)[:MAX_WORDS]:
        part = Part(f"{word} for an aggregate over nothing", f"An aggregate over nothing gives {word}.")
        yield Fault(part, partial(_say, word=word), family="empty_aggregate")


def _say(case: Case, word: Term) -> Case:
    def worded(rows: Rows) -> Rows:
        # Unbound first, so that rows over nothing can be told from zeros, and then the word in place of what is
        # unbound.
        return tuple((word,) * len(row) if all(term is None for term in row) else row for row in rows)

    return case.under(empty_aggregate=EmptyAggregate.UNBOUND).answering(worded)
