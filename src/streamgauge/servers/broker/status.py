"""The status of a broker: a channel as JSON, counts as metrics."""

from collections.abc import Iterator

from streamgauge.servers.broker.broker import Broker
from streamgauge.servers.broker.channels import Channel
from streamgauge.servers.broker.hooks import Hooks
from streamgauge.servers.http.deadlines import resident
from streamgauge.servers.http.metrics import PAUSES, Metric


def status(channel: Channel) -> dict[str, object]:
    """One channel: its query, and the number of its last notification."""
    return {
        "channel": channel.name,
        "query": channel.query,
        "form": channel.kind,
        "variables": list(channel.variables),
        "notification": channel.number,
        "subscribers": len(channel.acknowledged),
        "connections": len(channel.connected),
    }


def subscriber_status(channel: Channel, name: str) -> dict[str, object]:
    """A subscriber by name: the number of the last notification that was acknowledged."""
    return {"channel": channel.name, "subscriber": name, "acknowledged": channel.acknowledged[name]}


def metrics(broker: Broker, hooks: Hooks) -> Iterator[Metric]:
    """Counts of the whole broker; channels are too many to be counted by name."""
    channels = broker.channels()
    told = sum(each.number for each in channels)
    kept = sum(log.entries.bytes for log in {each.log for each in channels})
    for name, about, value in (
        ("channels", "Channels.", len(channels)),
        ("subscribers", "Subscribers by name.", sum(len(each.acknowledged) for each in channels)),
        ("connections", "Who is connected.", sum(len(each.connected) for each in channels)),
        ("notifications", "Notifications of the channels that are there.", told),
        ("kept_bytes", "What is kept of notifications.", kept),
        ("waiting", "Publications that wait.", broker.waiting),
        ("failed", "1 when nothing is taken any more.", int(bool(broker.fault))),
        ("refusing", "1 when the disk did not take the last change.", int(bool(broker.trouble))),
    ):
        yield Metric(f"streamgauge_broker_{name}", "gauge", about, (({}, float(value)),))
    held = broker.held()
    terms, about = float(held.terms), "Different terms of facts, all interned."
    yield Metric("streamgauge_broker_interned_terms", "gauge", about, (({}, terms),))
    parts = (("facts", held.facts), ("answers", held.answers), ("notifications", kept), ("process", resident()))
    memory = tuple(({"of": name}, float(value)) for name, value in parts)
    yield Metric(
        "streamgauge_broker_memory_bytes", "gauge", "About what is kept; the process as the system has it.", memory
    )
    yield from PAUSES.metrics()
    for name, about, value in (
        ("publications", "Publications taken in.", broker.number),
        ("webhook_failures", "Tries that a webhook did not take.", hooks.failures),
    ):
        yield Metric(f"streamgauge_broker_{name}_total", "counter", about, (({}, float(value)),))
