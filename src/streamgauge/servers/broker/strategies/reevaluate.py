"""SENS's first prototype: after each change all queries are evaluated and compared with their last answers.

(Murth et al., SEP-BM, section 4.1.) The publications of a batch are evaluated together; removed rows are reported too.
"""

from collections.abc import Iterator, Sequence

from streamgauge.reasoning.rules import Rules
from streamgauge.servers.broker.contract import AnswerChange, Publication
from streamgauge.servers.broker.evaluation import Evaluating


def start(rules: Rules) -> "Reevaluate":
    """The strategy without facts and channels."""
    return Reevaluate(rules)


class Reevaluate(Evaluating):
    """Evaluates all channels after every change of the closure."""

    def publish(self, publications: Sequence[Publication], now: float) -> Iterator[AnswerChange]:  # noqa: ARG002
        """The changes by all publications together; each of them may be the cause."""
        # A list, since `any` on a generator would stop at the first change and leave the rest of the batch out.
        changed = [self.stored.change(publication.added, publication.removed) for publication in publications]
        if not any(changed):
            return
        causes = tuple(publication.number for publication in publications)
        for name, channel in self.channels.items():
            added, removed = self.differences(channel)
            if added or removed:
                yield AnswerChange(name, causes, added, removed)
