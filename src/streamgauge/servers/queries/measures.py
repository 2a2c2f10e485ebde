"""The metrics of the query service, for Prometheus: of queries, streams and the state."""

from collections.abc import Callable, Iterator

from streamgauge.servers.http.metrics import PAUSES, Metric
from streamgauge.servers.queries.deliveries import AnswerDelivery
from streamgauge.servers.queries.folder import QueryFolder
from streamgauge.servers.queries.registered import RegisteredQuery
from streamgauge.servers.queries.registry import Queries


def metrics(queries: Queries) -> Iterator[Metric]:
    """Counts of the service and of every query in it."""
    running = queries.queries()
    yield from PAUSES.metrics()
    yield Metric("streamgauge_queries", "gauge", "Registered queries.", (({}, len(running)),))
    elements = tuple(({"stream": name}, float(count)) for name, count in queries.streams().items())
    yield Metric("streamgauge_stream_elements_total", "counter", "Elements that came on a stream.", elements)
    measures: tuple[tuple[str, str, Callable[[RegisteredQuery], float]], ...] = (
        ("elements_total", "Elements that a query has taken in.", lambda one: one.elements),
        ("late_total", "Elements that came too late to count.", lambda one: one.late),
        ("answers_total", "Answers that a query has given.", lambda one: one.answers.number),
        ("waiting", "Elements that wait for a query.", lambda one: one.worker.waiting),
        ("subscribers", "Who takes a query's answers now.", lambda one: one.answers.subscribers),
        ("memory_bytes", "What a query is estimated to hold.", lambda one: one.memory),
        ("ended", "1 when a query has ended by itself.", lambda one: bool(one.fault)),
        ("failed", "1 when a query has failed.", lambda one: one.state == "failed"),
        ("watermark_seconds", "The greatest time of a query's elements.", lambda one: (one.time or 0) / 1000),
    )
    for name, about, value in measures:
        values = tuple(({"query": one.name}, float(value(one))) for one in running)
        yield Metric(f"streamgauge_query_{name}", "counter" if name.endswith("_total") else "gauge", about, values)
    if (journal := queries.journal) is not None:
        yield Metric("streamgauge_state_bytes", "gauge", "Bytes of the state on the disk.", (({}, journal.state.size),))
        yield Metric("streamgauge_state_items", "gauge", "Items that are kept.", (({}, journal.state.kept_items),))
        yield Metric("streamgauge_checkpoint_age_seconds", "gauge", "How long a change waits.", (({}, journal.age),))


def folder_metrics(folder: QueryFolder) -> Iterator[Metric]:
    """How many files of queries are refused, and how the deliveries of answers go, by query and sink."""
    yield Metric("streamgauge_query_files_refused", "gauge", "Files of queries that cannot be used.",
                 (({}, float(len(folder.refused))),))  # fmt: skip
    measures: tuple[tuple[str, str, Callable[[AnswerDelivery], float]], ...] = (
        ("behind", "Answers that have yet to arrive.", lambda delivery: delivery.behind),
        ("undelivered_total", "Answers that will not arrive.", lambda delivery: delivery.undelivered),
        ("away", "1 while a sink takes nothing.", lambda delivery: bool(delivery.fault)),
    )
    for name, about, value in measures:
        values = tuple(
            ({"query": delivery.query, "sink": delivery.sink}, float(value(delivery)))
            for delivery in folder.deliveries.status()
        )
        yield Metric(f"streamgauge_sink_{name}", "counter" if name.endswith("_total") else "gauge", about, values)
