"""SENS's first prototype: after each change all queries are answered again and compared with their last answers.

Murth et al., SEP-BM, section 4.1; publications that wait are evaluated together. Rows that left are told too.
"""

from collections.abc import Iterator, Sequence

from streamgauge.reasoning.rules import Rules
from streamgauge.servers.broker.contract import AnswerChange, Publication
from streamgauge.servers.broker.evaluation import Evaluating


def start(rules: Rules) -> "Reevaluate":
    """Without facts and channels."""
    return Reevaluate(rules)


class Reevaluate(Evaluating):
    """All channels, every time."""

    def publish(self, publications: Sequence[Publication], now: float) -> Iterator[AnswerChange]:  # noqa: ARG002
        """The differences of all publications together; each may be due to any of them."""
        changed = [self.stored.change(publication.added, publication.removed) for publication in publications]
        if not any(changed):
            return
        causes = tuple(publication.number for publication in publications)
        for name, channel in self.channels.items():
            added, removed = self.differences(channel)
            if added or removed:
                yield AnswerChange(name, causes, added, removed)
