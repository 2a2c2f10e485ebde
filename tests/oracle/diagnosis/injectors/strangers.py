"""Faults of kinds that the diagnosis has no file for: a right world becomes the reports that a strange engine gives.

Each one changes most of the reports, so that it cannot pass for something that happens now and then.
"""

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from itertools import count
from random import Random

from streamgauge.model.query import Window
from streamgauge.model.terms import Row
from tests.oracle.diagnosis.injectors.world import DOUBLE, Graph, Told, World, observations, told

Stranger = Callable[[World], Told]


def values_times_1_01_in_every_other_window(world: World) -> Told:
    return [
        (at, _valued(rows, lambda value: value * Decimal("1.01")) if n % 2 else rows) for n, at, rows in _told(world)
    ]


def values_plus_the_windows_number(world: World) -> Told:
    return [(at, _valued(rows, lambda value, n=n: value + n)) for n, at, rows in _told(world)]


def digits_of_values_reversed(world: World) -> Told:
    return [(at, _valued(rows, lambda value: Decimal(str(int(value))[::-1]))) for _, at, rows in _told(world)]


def values_as_their_difference_to_the_first_row(world: World) -> Told:
    def relative(rows: list[Row]) -> list[Row]:
        first = _value(rows[0]) if rows else Decimal(0)
        return _valued(rows, lambda value: value - first)

    return [(at, relative(rows)) for _, at, rows in _told(world)]


def values_as_running_totals(world: World) -> Told:
    total, result = Decimal(0), []
    for _, at, rows in _told(world):
        total += sum(map(_value, rows), Decimal(0))
        result.append((at, _valued(rows, lambda _value, total=total: total)))
    return result


def values_capped_at_70(world: World) -> Told:
    return [(at, _valued(rows, lambda value: min(value, Decimal(70)))) for _, at, rows in _told(world)]


def values_reversed_among_the_rows(world: World) -> Told:
    return [(at, _exchanged(rows, -1, lambda column: column[::-1])) for _, at, rows in _told(world)]


def subjects_rotated_among_the_rows(world: World) -> Told:
    return [(at, _exchanged(rows, 0, lambda column: column[1:] + column[:1])) for _, at, rows in _told(world)]


def sensors_exchanged_in_every_other_window(world: World) -> Told:
    def other(term: str) -> str:
        return term.replace("C0>", "C#>").replace("C1>", "C0>").replace("C#>", "C1>")

    def exchanged(rows: list[Row]) -> list[Row]:
        return [tuple(None if term is None else other(term) for term in row) for row in rows]

    return [(at, exchanged(rows) if n % 2 else rows) for n, at, rows in _told(world)]


def iris_in_capitals(world: World) -> Told:
    return [(at, [(row[0] and row[0].upper(), *row[1:]) for row in rows]) for _, at, rows in _told(world)]


def values_with_a_language(world: World) -> Told:
    return [(at, [(*row[:-1], f'"{_value(row)}"@en') for row in rows]) for _, at, rows in _told(world)]


def elements_of_prime_numbers_dropped(world: World) -> Told:
    primes = {n for n in range(2, 100) if all(n % of for of in range(2, n))}
    return _kept(world, lambda n: n not in primes)


def every_other_element_dropped(world: World) -> Told:
    return _kept(world, lambda n: n % 2 == 1)


def blackouts_of_two_seconds(world: World) -> Told:
    """What comes in the first two of every five seconds is lost."""
    elements = tuple(element for element in world.elements if element.time % 5000 >= 2000)
    return told(replace(world, elements=elements))


def every_other_observation_of_a_window(world: World) -> Told:
    """Each window samples its own content: its second, fourth, ... observation is skipped."""
    return _holding(world, lambda _n, _at, inside: [item for n, item in enumerate(inside) if n // 4 % 2 == 0])


def windows_of_two_sizes_in_turn(world: World) -> Told:
    def turn(n: int, at: int, _inside: Graph) -> Graph:
        size = world.window.size + (1500 if n % 2 else -1500)
        return [(time, triple) for time, triple in world.facts() if at - size <= time < at]

    return _holding(world, turn)


def windows_that_grow(world: World) -> Told:
    """Each window starts a second more before its own start than the one before it."""

    def grown(n: int, at: int, _inside: Graph) -> Graph:
        return [(time, triple) for time, triple in world.facts() if at - world.window.size - n * 1000 <= time < at]

    return _holding(world, grown)


def a_hole_in_the_middle_of_windows(world: World) -> Told:
    def holed(_n: int, at: int, inside: Graph) -> Graph:
        return [(time, triple) for time, triple in inside if not at - 3500 <= time < at - 1500]

    return _holding(world, holed)


def one_sensor_is_four_seconds_late(world: World) -> Told:
    """The observations of one sensor are taken to be four seconds younger than they are, those of others not."""
    late = {obs for element in world.elements for obs, _, of in element.added if of.endswith("System_C1>")}

    def time(entry: tuple[int, tuple[str, str, str]]) -> int:
        number = entry[1][0].rpartition("_")[2]
        return entry[0] + (4000 if any(obs.rpartition("_")[2] == number for obs in late) else 0)

    def held(_n: int, at: int, _inside: Graph) -> Graph:
        return [fact for fact in world.facts() if at - world.window.size <= time(fact) < at]

    return _holding(world, held)


def a_frozen_sensor(world: World) -> Told:
    """Every reading but the first of three is the one before it."""
    values = [element.added[-1][2] for element in world.elements]
    elements = tuple(
        replace(element, added=(*element.added[:-1], (*element.added[-1][:2], values[n - n % 3])))
        for n, element in enumerate(world.elements)
    )
    return told(replace(world, elements=elements))


def reports_in_blocks_of_three_backwards(world: World) -> Told:
    result = _told(world)
    order = [block for start in range(0, len(result), 3) for block in reversed(result[start : start + 3])]
    return [(at, rows) for (_, at, _), (_, _, rows) in zip(result, order, strict=True)]


def every_window_with_the_rows_of_the_last_but_one(world: World) -> Told:
    result = _told(world)
    return [(at, [*rows, *(result[n - 2][2] if n > 1 else [])]) for n, at, rows in result]


STRANGERS: tuple[Stranger, ...] = (
    values_times_1_01_in_every_other_window, values_plus_the_windows_number, digits_of_values_reversed,
    values_as_their_difference_to_the_first_row, values_as_running_totals, values_capped_at_70,
    values_reversed_among_the_rows, subjects_rotated_among_the_rows, sensors_exchanged_in_every_other_window,
    iris_in_capitals, values_with_a_language, elements_of_prime_numbers_dropped, every_other_element_dropped,
    blackouts_of_two_seconds, every_other_observation_of_a_window, windows_of_two_sizes_in_turn, windows_that_grow,
    a_hole_in_the_middle_of_windows, one_sensor_is_four_seconds_late, a_frozen_sensor,
    reports_in_blocks_of_three_backwards, every_window_with_the_rows_of_the_last_but_one,
)  # fmt: skip


def _told(world: World) -> list[tuple[int, int, list[Row]]]:
    """The reports of the right world: number, instant (ms), rows."""
    return [(n, at, rows) for n, (at, rows) in enumerate(told(world))]


def _kept(world: World, keeps: Callable[[int], bool]) -> Told:
    return told(replace(world, elements=tuple(element for n, element in enumerate(world.elements, 1) if keeps(n))))


def _holding(world: World, hold: Callable[[int, int, Graph], Graph]) -> Told:
    """The reports over what ``hold(number, instant, inside)`` makes of each window's content."""
    numbers = count()
    return told(replace(world, hold=lambda _world, _number, at, inside: hold(next(numbers), at, inside)))


def _value(row: Row) -> Decimal:
    term = row[-1]
    assert term is not None
    return Decimal(term[1 : term.index('"', 1)])


def _valued(rows: list[Row], change: Callable[[Decimal], Decimal]) -> list[Row]:
    """Rows whose last column, a number, is another one."""
    return [(*row[:-1], f'"{change(_value(row)):f}"^^<{DOUBLE}>') for row in rows]


def _exchanged(rows: list[Row], at: int, change: Callable[[list[str | None]], list[str | None]]) -> list[Row]:
    """Rows that exchange the terms of one column."""
    column = change([row[at] for row in rows])
    width = len(rows[0]) if rows else 0
    return [
        tuple(other if place == at % width else term for place, term in enumerate(row))
        for row, other in zip(rows, column, strict=True)
    ]


def steady_world(world: World, rng: Random) -> World:
    """The world with a longer stream, and wide windows that always hold some observations."""
    elements = observations(rng, 32, 1000, 4)
    return replace(world, window=Window(6000, 3000), elements=elements, advanced_to=elements[-1].time)
