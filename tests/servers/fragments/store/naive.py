"""The contract of stores in its plainest form: a dictionary that is looked through, every state of it kept."""

from collections.abc import Iterable

from streamgauge.servers.fragments import ExpiringQuad, Match, Quad

Run = tuple[Quad, int, int | None]


def matches(quad: Quad, match: Match) -> bool:
    return all(wanted is None or wanted == term for wanted, term in zip(match, quad, strict=True))


class Naive:
    """Quads with their ends; runs (quad, initial, final) of those that left."""

    def __init__(self) -> None:
        self.ends: dict[Quad, int | None] = {}
        self.states: list[frozenset[Quad]] = [frozenset()]
        self.began: dict[Quad, int] = {}
        self.runs: list[Run] = []
        self.first: int | None = None

    @property
    def version(self) -> int:
        return len(self.states) - 1

    def change(self, removed: Iterable[Quad], added: Iterable[ExpiringQuad], at: int) -> None:
        ends = {quad: end for quad, end in self.ends.items() if quad not in set(removed)} | dict(added)
        if ends == self.ends:
            return
        self.first = at if self.first is None else self.first
        for quad, end in self.ends.items():
            final = at if end is None else min(end, at)
            if quad not in ends or (quad in dict(added) and final < at):
                self.runs.append((quad, self.began.pop(quad), final))
        for quad in ends:
            self.began.setdefault(quad, at)
        self.ends = ends
        self.states.append(frozenset(ends))

    def select(self, match: Match) -> list[Quad]:
        return sorted(quad for quad in self.ends if matches(quad, match))

    def nearest(self, match: Match, now: int) -> int | None:
        ends = (self.ends[quad] for quad in self.select(match))
        return min((end for end in ends if end is not None and end > now), default=None)

    def ended(self, now: int) -> list[int]:
        return sorted(end for end in self.ends.values() if end is not None and end <= now)

    def changed(self, match: Match, since: int) -> tuple[set[Quad], set[Quad]]:
        now, then = self.states[-1], self.states[since]
        return {q for q in now - then if matches(q, match)}, {q for q in then - now if matches(q, match)}

    def at(self, match: Match, instant: int) -> list[Quad]:
        there: list[Run] = [(quad, self.began[quad], end) for quad, end in self.ends.items()]
        held = [quad for quad, initial, final in there + self.runs if initial <= instant and _before(instant, final)]
        return sorted(quad for quad in held if matches(quad, match))


def _before(instant: int, final: int | None) -> bool:
    return final is None or instant < final
