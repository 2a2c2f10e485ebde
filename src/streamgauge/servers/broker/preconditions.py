"""Conditions of a client on a channel or a subscriber before it changes (RFC 9110, 13.1)."""

from streamgauge.servers.broker.channels import Channel
from streamgauge.servers.broker.registry import Require
from streamgauge.servers.broker.status import status, subscriber_status
from streamgauge.servers.http.headers import Conditions
from streamgauge.servers.http.replies import json_tag


def channel_demands(conditions: Conditions, name: str) -> Require:
    """The entity tag of a channel is that of its status, which each notification changes."""

    def require(channel: Channel | None) -> None:
        tags = [] if channel is None else [json_tag(status(channel))]
        conditions.require(tags, f"the channel {name}")

    return require


def subscriber_demands(conditions: Conditions, name: str) -> Require:
    """The entity tag of a subscriber is that of its status: what it acknowledged."""

    def require(channel: Channel | None) -> None:
        there = channel is not None and name in channel.acknowledged
        tags = [json_tag(subscriber_status(channel, name))] if channel is not None and there else []
        conditions.require(tags, f"the subscriber {name}")

    return require
