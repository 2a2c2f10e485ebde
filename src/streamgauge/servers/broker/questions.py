"""Queries over a broker's current facts: facts are copied under the lock, and evaluated without it."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass

from streamgauge.formats.instants import date_time
from streamgauge.incremental.budget import TooMuchError
from streamgauge.model import algebra as al
from streamgauge.model.terms import Row, Term
from streamgauge.query.text import QueryError, blank, tokens
from streamgauge.query.traversal import with_value
from streamgauge.query.updates import ALL, GraphNames
from streamgauge.servers.broker.limits import GraphError, LimitError, Limits, read_query, too_deep
from streamgauge.servers.http.deadlines import DEADLINES
from streamgauge.sparql.algebra import UndefinedError, answer
from streamgauge.sparql.expression import UnsupportedFunctionError
from streamgauge.sparql.needs import Facts, Looks, Needs


@dataclass(frozen=True, slots=True)
class GraphQuestion:
    """A query with the graphs it ranges over."""

    form: al.QueryForm
    graphs: GraphNames


def read_question(text: str, graphs: GraphNames | None, limits: Limits, now: int) -> GraphQuestion:
    """A query with its FROM clauses, or ``graphs`` if the request names any; NOW() is ``now`` (ms).

    QueryError, LimitError.
    """
    if len(text) > limits.query_text:
        raise LimitError(f"a query of more than {limits.query_text} characters: write a shorter one")
    plain, own = _without_from(text)
    form = read_query(plain, limits)
    return GraphQuestion(with_value(form, al.Call("NOW", ()), date_time(now)), graphs or own)


def _without_from(text: str) -> tuple[str, GraphNames]:
    """The text with FROM and FROM NAMED blanked out, which precede the first brace, and the graphs that they name."""
    words = tokens(text)
    end_of_clauses = next((place for place, token in enumerate(words) if token.text == "{"), len(words))
    graphs: dict[bool, list[Term]] = {False: [], True: []}
    for place, token in enumerate(words[:end_of_clauses]):
        if not token.says("FROM"):
            continue
        named = place + 1 < end_of_clauses and words[place + 1].says("NAMED")
        name = words[place + 1 + named] if place + 1 + named < end_of_clauses else token
        if name.kind != "iri":
            raise QueryError("FROM is followed by an IRI in angle brackets here", text, token.start)
        graphs[named].append(name.text)
        # Blanked and not cut: positions in errors stay those of the text that was sent.
        text = blank(text, token.start, name.end)
    default, named_graphs = tuple(graphs[False]), tuple(graphs[True])
    return text, GraphNames(default, named_graphs) if default or named_graphs else ALL


def answered(
    question: GraphQuestion, facts: Facts, limits: Limits, turn: Callable[[], AbstractContextManager[None]]
) -> tuple[Row, ...]:
    """The rows of a query over facts that are copied within ``turn()``.

    TooManySolutionsError, LimitError, GraphError for undefined answers.
    """
    needs = Needs(facts, question.graphs, limits.question, Looks(limits.question))
    try:
        # The lock is held for copying alone, and therefore for much less time than the evaluation may take.
        with turn(), DEADLINES.within(limits.where_seconds, limits.growth):
            needs.of(question.form.pattern)
        with DEADLINES.within(limits.seconds, limits.growth):
            rows = answer(question.form, needs.dataset())
    except TooMuchError as error:
        raise LimitError(f"{error}: ask for less") from error
    except (UndefinedError, UnsupportedFunctionError) as error:
        raise GraphError(str(error)) from error
    except RecursionError:
        raise too_deep() from None
    if len(rows) > limits.question:
        raise LimitError(f"the answer has {len(rows)} rows, {limits.question} at most: ask for less")
    return rows
