"""Boards of departures whose delays and platforms end and are renewed, as the server of a replay is told of them."""

import asyncio
from dataclasses import dataclass

from streamgauge.model.fact import Fact
from streamgauge.servers.fragments.labels import Label
from tests.servers.fragments.live_queries.simulated import clock

T = "http://example.org/train#"
UPDATE = 20_000
LASTS = 24_000
APART = 8_000
"""Between the instants at which an observation holds, where labels are instants."""
KEPT = 60_000
"""How long instants are kept when they are over: three times the observations of intervals, they are compacted."""


def _number(value):
    return f'"{value}"^^<http://www.w3.org/2001/XMLSchema#integer>'


@dataclass
class Boards:
    """Departures that come and go; some of their delays change at each update."""

    random: object
    size: int = 8
    changing: float = 0.1
    number: int = 0
    label: Label = Label.EXPIRATION

    def __post_init__(self):
        self.board = {}
        for _ in range(self.size):
            self._arrive()

    def _arrive(self):
        self.number += 1
        name = f"<{T}departure-{self.number}>"
        self.board[name] = {"delay": self.random.choice((0, 60, 120)), "platform": self.random.randint(1, 4)}
        return name

    def static(self, name):
        number = int(name.rpartition("-")[2][:-1])
        return [
            Fact((name, f"<{T}headSign>", f'"{("Gent", "Brugge", "Lille")[number % 3]}"')),
            Fact((name, f"<{T}routeLabel>", f'"IC {number}"')),
            Fact((name, f"<{T}departureTime>", _number(number * 60))),
        ]

    def dynamic(self, at, lasts=LASTS):
        times = [(at, at + lasts)]
        if self.label is Label.INSTANT:
            times = [(time, time + 1) for time in range(-(-at // APART) * APART, at + lasts, APART)]
        return [
            Fact((name, f"<{T}{key}>", _number(value)), *time_)
            for name, values in self.board.items()
            for key, value in values.items()
            for time_ in times
        ]

    def begin(self, served, lasts=LASTS):
        served.add([fact for name in self.board for fact in self.static(name)] + self.dynamic(clock(), lasts))

    def step(self, served):
        """An update: some change, one leaves, one comes; what is static of it is there first."""
        if self.random.random() < 0.3:
            self.board.pop(next(iter(self.board)))
            served.add(self.static(self._arrive()))
        for values in self.board.values():
            if self.random.random() < self.changing:
                values["delay"] += 60
            if self.random.random() < self.changing / 4:
                values["platform"] = self.random.randint(1, 4)

    async def run(self, served, until, every=UPDATE):
        """Updates at uneven times, some arrive late, after the one that follows them."""
        self.begin(served)
        late = []
        while clock() < until:
            await asyncio.sleep(every / 1000 * self.random.uniform(0.8, 1.1))
            self.step(served)
            facts = self.dynamic(clock())
            if self.random.random() < 0.1:
                late = facts
                continue
            half = len(facts) // 2
            served.add(facts[:half])
            await asyncio.sleep(self.random.uniform(0, 0.1))
            served.add(facts[half:])
            if late:
                served.add(late)
                late = []
            if self.label is Label.INSTANT:
                served.sweep(clock() - KEPT)
