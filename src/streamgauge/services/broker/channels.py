"""A channel: its query, its notifications in order, and who is told of them."""

from collections.abc import Callable
from dataclasses import dataclass, field

from streamgauge.services.broker.contract import Notification
from streamgauge.services.broker.limits import Limits
from streamgauge.services.web.answers import Answers, End, Subscription


class UnknownChannelError(KeyError):
    """No channel of that name is there."""

    def __str__(self) -> str:
        return f"there is no channel {self.args[0]}"


class ExistingChannelError(ValueError):
    """A channel of that name is there already."""


@dataclass
class Channel:
    """A query by name, and its notifications; ``acknowledged`` is the number of the last one, by subscriber."""

    name: str
    query: str
    variables: tuple[str, ...]
    notifications: Answers[Notification]
    acknowledged: dict[str, int] = field(default_factory=dict)

    @property
    def settled(self) -> int:
        """The number up to which every subscriber has acknowledged."""
        return min(self.acknowledged.values(), default=self.notifications.number)

    def tell(self, notification: Notification) -> None:
        """A notification is there to be taken."""
        self.notifications.add(notification, notification.size)


def opened(name: str, query: str, variables: tuple[str, ...], limits: Limits, number: int = 0) -> Channel:
    """A channel whose last notification had a number."""
    return Channel(name, query, variables, Answers(limits, number))


class Subscribed:
    """One subscriber's place in a channel; ``take`` gives what has come, ``acknowledge`` says what need not come again.

    ``over`` says why no more will come: the channel ended, or the subscriber fell too far behind (it may resume).
    """

    def __init__(
        self,
        name: str,
        channel: Channel,
        inner: Subscription[Notification],
        acknowledge: Callable[[str, str, int], None],
    ) -> None:
        self.name, self.channel = name, channel
        self._inner, self._acknowledge = inner, acknowledge

    @property
    def over(self) -> End | None:
        """Why no more will come."""
        return self._inner.over

    @property
    def missed(self) -> int:
        """How many notifications after its place are not kept any more."""
        return self._inner.missed

    def take(self) -> list[Notification]:
        """What has come since the last take, in order."""
        return [each.line for each in self._inner.take()]

    def acknowledge(self, number: int) -> None:
        """Notifications up to a number need not come again."""
        self._acknowledge(self.channel.name, self.name, number)

    def close(self) -> None:
        """Leave; a subscriber that comes back by the same name goes on after what it acknowledged."""
        self._inner.close()
