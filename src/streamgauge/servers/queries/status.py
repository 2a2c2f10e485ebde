"""The status of running queries: as JSON, and as metrics."""

from collections.abc import Callable, Iterator

from streamgauge.servers.http.metrics import PAUSES, Metric
from streamgauge.servers.queries.query import Running
from streamgauge.servers.queries.registry import Queries


def status(running: Running) -> dict[str, object]:
    """One query: what was asked, how it goes, sizes in bytes and counts since its registration."""
    question = running.question
    return {
        "id": running.name,
        "state": running.state,
        "fault": running.fault,
        "query": question.text,
        "engine": question.engine,
        "semantics": question.semantics.name,
        "streams": list(running.work.streams),
        "output": question.output,
        "elements": running.work.elements,
        "late": running.work.late,
        "waiting": running.work.waiting,
        "answers": running.answers.number,
        "subscribers": running.answers.subscribers,
        "memory": running.memory,
    }


def metrics(queries: Queries) -> Iterator[Metric]:
    """Counts of the service and of every query in it."""
    running = queries.queries()
    yield from PAUSES.metrics()
    yield Metric("streamgauge_queries", "gauge", "Registered queries.", (({}, len(running)),))
    elements = tuple(({"stream": name}, float(count)) for name, count in queries.streams().items())
    yield Metric("streamgauge_stream_elements_total", "counter", "Elements that came on a stream.", elements)
    each: tuple[tuple[str, str, Callable[[Running], float]], ...] = (
        ("elements_total", "Elements that a query has taken in.", lambda one: one.work.elements),
        ("late_total", "Elements that came too late to count.", lambda one: one.work.late),
        ("answers_total", "Answers that a query has given.", lambda one: one.answers.number),
        ("waiting", "Elements that wait for a query.", lambda one: one.work.waiting),
        ("subscribers", "Who takes a query's answers now.", lambda one: one.answers.subscribers),
        ("memory_bytes", "What a query is estimated to hold.", lambda one: one.memory),
        ("ended", "1 when a query has ended by itself.", lambda one: bool(one.fault)),
    )
    for name, about, value in each:
        values = tuple(({"query": one.name}, float(value(one))) for one in running)
        yield Metric(f"streamgauge_query_{name}", "counter" if name.endswith("_total") else "gauge", about, values)
