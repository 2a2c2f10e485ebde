"""Drawing cases: a shape, a semantics, a stream; one fault or two; the run that they give."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import count
from random import Random

from streamgauge.model.query import Window
from streamgauge.model.run import Run
from streamgauge.model.semantics import Grain, Origin, Semantics
from streamgauge.semantics.arrivals import origins
from streamgauge.semantics.definition import expected
from streamgauge.semantics.profiles import CQELS, CSPARQL, CSPARQL_097, RSPJS, RSPQL, SPARQLSTREAM, YABENCH
from tests.oracle.diagnosis.injectors.injected import ENGINE, REPORTS, Into, IntoReports
from tests.oracle.diagnosis.injectors.shapes import SHAPES, Shape
from tests.oracle.diagnosis.injectors.world import Told, World, observations, run, told

SEMANTICS = (CSPARQL, CQELS, SPARQLSTREAM, RSPQL, RSPJS, YABENCH, CSPARQL_097)


@dataclass(frozen=True)
class Case:
    """A run with faults in it (none: untouched), and the world that it should have been."""

    names: tuple[str, ...]
    shape: str
    world: World
    run: Run


def right_world(rng: Random, shape: Shape, semantics: Semantics) -> World:
    """An engine as it should be, with a start of its windows that its semantics allows."""
    step = rng.choice((250, 500, 1000))
    elements = observations(rng, rng.randint(16, 26), step, shape.sensors)
    window = Window(shape.size, shape.slide)
    static = ()
    if shape.static:
        static = tuple((f"<http://knoesis.wright.edu/ssw/System_C{n}>", "<urn:place>", f'"{n}"') for n in range(2))
    until = elements[-1].time + rng.choice((0, 1, window.size))
    world = World(shape.text, window, semantics, elements, 0, until, static)
    starts = origins(semantics, world.query().windows, elements[0].time)
    return replace(world, t0=rng.choice(starts))


def right_answers(world: World) -> list[Told]:
    """What the definition gives at every start that the semantics allows."""
    query = world.query()
    starts = origins(world.semantics, query.windows, world.elements[0].time)
    result = (expected(world.elements, query, world.semantics, world.advanced_to, t0) for t0 in starts)
    return [[(report.due.instant, list(report.rows)) for report in reports] for reports in result]


def same(world: World, left: Told, right: Told, named: bool) -> bool:
    """Whether two tellings are recorded alike."""
    if named:
        left, right = (sorted(item, key=lambda one: one[0]) for item in (left, right))
    if world.semantics.grain is Grain.ROW:
        if not named:
            left, right = ([(0, [row for _, rows in item for row in rows])] for item in (left, right))
        left, right = ([one for one in item if one[1]] for item in (left, right))
    return len(left) == len(right) and all(
        Counter(a[1]) == Counter(b[1]) and (not named or a[0] == b[0]) for a, b in zip(left, right, strict=True)
    )


def draw(seed: int, faults: int) -> Case | None:
    """The case of a seed; ``None`` when the faults do not apply, or change nothing that is recorded."""
    return draw_with(Random(seed), lambda rng: rng.sample([*ENGINE, *REPORTS], faults))


def draw_one(fault: str, first: int = 0) -> Case:
    """A case of one fault, by its injector's name: the first seed from ``first`` on at which it applies."""
    (inject,) = (item for item in (*ENGINE, *REPORTS) if item.__name__ == fault)
    cases = (draw_with(Random(seed), lambda rng: [inject]) for seed in count(first))
    return next(case for case in cases if case is not None)


def draw_with(rng: Random, choose: Callable[[Random], Sequence[Into | IntoReports]]) -> Case | None:
    """A case of chosen faults, at a drawn shape, semantics and stream."""
    shape, semantics = rng.choice(SHAPES), rng.choice(SEMANTICS)
    right = right_world(rng, shape, semantics)
    names = choose(rng)
    world: World | None = right
    for inject in (name for name in names if name in ENGINE):
        world = inject(rng, world, shape) if world is not None else None
    if world is None:
        return None
    reports: Told | None = told(world)
    for inject in (name for name in names if name in REPORTS):
        if reports is None or len(reports) < 4:
            return None
        reports = inject(rng, reports, right)
    if not reports or len(reports) < 4:
        return None
    named = semantics.origin is not Origin.SEARCH and rng.random() < 0.5
    if names and any(same(right, reports, answer, named) for answer in right_answers(right)):
        return None
    return Case(tuple(name.__name__ for name in names), shape.name, right, run(right, reports, named, rng))
