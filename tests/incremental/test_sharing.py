"""Operators with several readers: a pull of a query pulls each of them once, however many read it."""

import pytest

from streamgauge.incremental.drivers.landmark import Landmark
from streamgauge.incremental.paths import Reachability
from streamgauge.query import parse_sparql

FACTS = [(f"<urn:{n}>", f"<urn:p{n % 16}>", f"<urn:{n + 1}>") for n in range(20)]


@pytest.mark.parametrize("steps", [2, 8, 16])
def test_a_sequence_of_repeated_paths_is_pulled_step_by_step(monkeypatch: pytest.MonkeyPatch, steps: int) -> None:
    """Each step has two readers, which each pulled all steps before: 2 ** 16 pulls for 16 steps, at each change."""
    pulled, pull = [], Reachability.pull
    monkeypatch.setattr(Reachability, "pull", lambda self: (pulled.append(self), pull(self))[1])
    knowledge = Landmark()
    path = "/".join(f"<urn:p{n}>*" for n in range(steps))
    standing = knowledge.ask(parse_sparql(f"SELECT * {{ ?a {path} ?b }}"))
    pulled.clear()
    results = dict(knowledge.change(FACTS, ()))
    assert len(pulled) == steps
    ends = [(f"<urn:{a}>", f"<urn:{b}>") for a in range(21) for b in range(a, 21)]
    expected = {
        (one, two)
        for one, two in ends
        if all(n % 16 < steps for n in range(int(one[5:-1]), int(two[5:-1])))
        and len({(n // 16) for n in range(int(one[5:-1]), int(two[5:-1]))}) < 2
    }
    assert {(row[0], row[1]) for row in results[standing].added} == expected
