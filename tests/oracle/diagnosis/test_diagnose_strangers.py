"""Faults of kinds without a file are answered "none fits": a model is claimed only when the answers come out of it."""

from random import Random

import pytest

from streamgauge.model.run import Run
from streamgauge.oracle.diagnosis.diagnose import diagnose
from streamgauge.semantics.profiles import RSPQL
from tests.oracle.diagnosis.injectors.draw import right_world
from tests.oracle.diagnosis.injectors.shapes import SHAPES
from tests.oracle.diagnosis.injectors.strangers import STRANGERS, Stranger, steady_world
from tests.oracle.diagnosis.injectors.world import World, run, told

VALUES = next(shape for shape in SHAPES if shape.name == "e1")


def strange_run(stranger: Stranger) -> tuple[World, Run]:
    """The right world, and the run of a strange engine that is declared to be right."""
    rng = Random(7)
    world = steady_world(right_world(rng, VALUES, RSPQL), rng)
    return world, run(world, stranger(world), False, rng)


def test_there_are_twenty_kinds():
    assert len(STRANGERS) >= 20


EVERY_DAY = ("windows_that_grow",)
"""Kinds that the suite takes; the others are proved, as a search that finds nothing takes seconds."""


@pytest.mark.slow
@pytest.mark.parametrize(
    "stranger",
    [pytest.param(item, marks=() if item.__name__.startswith(EVERY_DAY) else pytest.mark.prove) for item in STRANGERS],
    ids=lambda item: item.__name__,
)
def test_none_fits_a_fault_of_a_kind_without_a_file(stranger):
    world, recorded = strange_run(stranger)
    diagnosis = diagnose(recorded, world.elements)
    assert not diagnosis.exact, diagnosis.models
    assert diagnosis.differs > 0


def test_the_world_without_a_stranger_is_right():
    world, recorded = strange_run(told)
    assert diagnose(recorded, world.elements).differs == 0
