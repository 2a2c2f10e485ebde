"""The channel of violations: which resources contradict an axiom of the ontology (OWL 2 RL rules that conclude false).

A violation is a fact that rules derive, with the property ``urn:streamgauge:violates``; the data stay as they are, and
the violation goes when a fact that it rests on does.
"""

from typing import Final

from streamgauge.reasoning.rules import VIOLATES, Rules
from streamgauge.servers.broker.broker import Broker

CHANNEL: Final = "violations"
QUERY: Final = f"SELECT ?subject ?violation WHERE {{ ?subject {VIOLATES} ?violation }}"


def open_violations(broker: Broker, rules: Rules) -> int:
    """Have the channel where facts can violate an axiom, unless it is there; how many violations there are now.

    ValueError when a channel of that name has another query; LimitError as for any channel.
    """
    if not rules.constrains:
        return 0
    there = {each.name: each.query for each in broker.channels()}
    if there.get(CHANNEL, QUERY) != QUERY:
        raise ValueError(
            f"the journal has a channel {CHANNEL} with another query, and the ontology needs that name for what "
            "contradicts it: delete the channel (start without the ontology), or take another journal"
        )
    if CHANNEL not in there:
        broker.create_channel(CHANNEL, QUERY)
    _, rows = broker.rows(CHANNEL)
    return len(rows)
