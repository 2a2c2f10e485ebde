"""The answers of a CONSTRUCT query as a stream that other queries may be asked over."""

from streamgauge.model import algebra as al
from streamgauge.model.answer import Answer
from streamgauge.model.element import StreamElement
from streamgauge.model.query import ContinuousQuery


def makes_triples(query: ContinuousQuery) -> bool:
    """Whether the query's answers are graphs."""
    return isinstance(query.form, al.Construct)


def as_element(answer: Answer, stream: str, sequence: int) -> StreamElement:
    """The graph of one report as an element at its instant (ms); ValueError for rows and for reports without a time."""
    if answer.kind != "triples":
        raise ValueError("only the answers of a CONSTRUCT query are graphs: ask for a graph, or take the rows")
    time = answer.instant if answer.instant is not None else answer.scope[1] if answer.scope is not None else None
    if time is None:
        raise ValueError("the engine does not say of which instant its reports are, so they are no stream")
    added = tuple([(str(s), str(p), str(o)) for s, p, o in answer.added])
    removed = tuple([(str(s), str(p), str(o)) for s, p, o in answer.removed])
    return StreamElement(stream, time, sequence, added, removed)
