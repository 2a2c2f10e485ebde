"""A small configuration: students of a department come and go, and what the channels are due, from scratch."""

from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

from streamgauge.servers.broker.contract import Publication
from streamgauge.suites.sepbm import DueRows, SepbmChannel
from tests.servers.broker.world import BASE, ONTOLOGY, QUERIES, RULES, answers, fact, select, student

NAMES = tuple(sorted(QUERIES))


def mixed(count=12):
    """Students publish, every third is deleted again, and once a course comes that makes students."""
    steps = []
    for number in range(count):
        steps.append((student(number), ()))
        if number % 3 == 2:
            steps.append(((), student(number - 1)))
    steps.append(((fact("c9", "a", "Course"), fact("s0", "takes", "c9")), ()))
    return tuple(Publication(at, added, removed) for at, (added, removed) in enumerate(steps, 1))


@dataclass
class Small:
    """A configuration in memory."""

    folder: Path = Path("small")
    publications: tuple[Publication, ...] = field(default_factory=mixed)
    channels: tuple[SepbmChannel, ...] = tuple(SepbmChannel(name, select(QUERIES[name])) for name in NAMES)

    def rules(self):
        return RULES

    def ontology(self):
        return ONTOLOGY

    def base(self):
        return iter(BASE)

    def sequence(self):
        return iter(self.publications)

    def due(self):
        return iter(due(self.publications))


@cache  # closures from scratch cost half a second, and most tests publish the same
def due(publications):
    """The rows that each publication makes due on each channel."""
    results = []
    facts, before = set(BASE), answers(BASE)
    for publication in publications:
        facts = facts - set(publication.removed) | set(publication.added)
        now = answers(facts)
        for name in NAMES:
            added, removed = now[name] - before[name], before[name] - now[name]
            if added or removed:
                results.append(DueRows(name, publication.number, tuple(sorted(added)), tuple(sorted(removed))))
        before = now
    return results


def net(heard):
    """What all that a channel was told adds up to: rows that came and stayed, rows that went and stayed away."""
    results = {}
    for message in heard:
        for row in message.added:
            results[message.channel, row] = results.get((message.channel, row), 0) + 1
        for row in message.removed:
            results[message.channel, row] = results.get((message.channel, row), 0) - 1
    return {key: count for key, count in results.items() if count}


def on_disk(folder, small):
    """The same, with base load and ontology in files, for systems that are programs."""
    for name, triples in (("base.nt", BASE), ("ontology.nt", ONTOLOGY)):
        (folder / name).write_text("".join(f"{s} {p} {o} .\n" for s, p, o in triples), encoding="utf-8")
    return replace(small, folder=folder)
