"""The broker's state as HTTP shows it: channels and subscribers with their entity tags, and metrics."""

from collections.abc import Iterator

from starlette.requests import Request

from streamgauge.servers.broker.broker import Broker
from streamgauge.servers.broker.channels import Channel
from streamgauge.servers.broker.delivery import Webhooks
from streamgauge.servers.broker.registry import Require
from streamgauge.servers.http.deadlines import resident
from streamgauge.servers.http.headers import read_conditions
from streamgauge.servers.http.metrics import PAUSES, Metric
from streamgauge.servers.http.replies import json_tag


def channel_demands(request: Request, name: str) -> Require:
    """The conditions of a request (RFC 9110, 13.1) on a channel, whose entity tag changes with every notification."""
    conditions = read_conditions(request.headers.raw)

    def require(channel: Channel | None) -> None:
        conditions.require([] if channel is None else [json_tag(channel_status(channel))], f"the channel {name}")

    return require


def subscriber_demands(request: Request, name: str) -> Require:
    """The conditions of a request on a subscriber, whose entity tag changes with every acknowledgement."""
    conditions = read_conditions(request.headers.raw)

    def require(channel: Channel | None) -> None:
        there = channel is not None and name in channel.acknowledged
        tags = [json_tag(subscriber_status(channel, name))] if channel is not None and there else []
        conditions.require(tags, f"the subscriber {name}")

    return require


def channel_status(channel: Channel) -> dict[str, object]:
    """The JSON of a channel."""
    return {
        "channel": channel.name,
        "query": channel.query,
        "form": channel.log.kind,
        "variables": list(channel.variables),
        "notification": channel.number,
        "subscribers": len(channel.acknowledged),
        "connections": len(channel.connected),
    }


def subscriber_status(channel: Channel, name: str) -> dict[str, object]:
    """The JSON of a named subscriber."""
    return {"channel": channel.name, "subscriber": name, "acknowledged": channel.acknowledged[name]}


def broker_metrics(broker: Broker, hooks: Webhooks) -> Iterator[Metric]:
    """Metrics of the whole broker; there are too many channels for metrics by name."""
    channels = broker.channels()
    total = sum(channel.number for channel in channels)
    # A set, because several channels share a log.
    kept = sum(log.entries.bytes for log in {channel.log for channel in channels})
    for name, about, value in (
        ("channels", "Channels.", len(channels)),
        ("subscribers", "Named subscribers.", sum(len(channel.acknowledged) for channel in channels)),
        ("connections", "Open subscriptions.", sum(len(channel.connected) for channel in channels)),
        ("notifications", "Notifications of the existing channels.", total),
        ("kept_bytes", "Bytes of stored notifications.", kept),
        ("kept_bytes_limit", "Maximum bytes of stored notifications per token.", broker.budget.limit),
        ("budgets_reached", "Tokens that have reached their budget of stored notifications.", broker.budget.reached),
        ("waiting", "Queued publications.", broker.waiting),
        ("failed", "1 if the broker has failed and has to be restarted.", int(bool(broker.fault))),
        ("refusing", "1 if the disk refused the last change.", int(bool(broker.trouble))),
    ):
        yield Metric(f"streamgauge_broker_{name}", "gauge", about, (({}, float(value)),))
    behind = tuple(({name: str(hook[name]) for name in ("channel", "url")}, hook["behind"]) for hook in hooks.status())
    yield Metric("streamgauge_broker_webhook_behind", "gauge", "Notifications not yet delivered to a webhook.", behind)
    holdings = broker.held()
    terms, about = float(holdings.terms), "Distinct terms of facts, all interned."
    yield Metric("streamgauge_broker_interned_terms", "gauge", about, (({}, terms),))
    parts = (("facts", holdings.facts), ("answers", holdings.answers), ("notifications", kept), ("process", resident()))
    memory = tuple(({"of": name}, float(value)) for name, value in parts)
    yield Metric("streamgauge_broker_memory_bytes", "gauge", "Memory by use; of the process: its resident set.", memory)
    yield from PAUSES.metrics()
    for name, about, value in (
        ("publications", "Publications processed.", broker.number),
        ("let_go", "Notifications discarded because a token's budget was reached.", broker.budget.let_go),
        ("webhook_failures", "Failed deliveries to webhooks, each of which is repeated.", hooks.failures),
    ):
        yield Metric(f"streamgauge_broker_{name}_total", "counter", about, (({}, float(value)),))
