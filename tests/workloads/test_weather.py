"""The weather stream: YABench's published numbers, a plain re-telling of SG1, and the options that SG1 lacks."""

import random
from collections import Counter, deque, namedtuple
from hashlib import sha256
from itertools import pairwise

import pytest

from streamgauge.formats import stream as stream_table
from streamgauge.formats.canonical import Canonical, parse_term
from streamgauge.formats.streams import write_stream
from streamgauge.workloads import load
from streamgauge.workloads.parameters import ParameterError

SSW = "http://knoesis.wright.edu/ssw/"
WEATHER = load("weather")


def sg1(seed: int, stations=10, interval=1000, duration=30_000, min_temp=0, max_temp=100):
    """SG1 as it is told: draw the offsets, sort, then take the first station of a queue until time is up."""
    bound = max_temp - min_temp
    most = stations * (duration // interval + 2)
    draws = DrawnInTurn(seed)
    offsets = [(draws.next(interval), station) for station in range(stations)]
    queue = deque([offset, station] for offset, station in sorted(offsets, key=lambda pair: pair[0]))
    now, seen = 0, []
    while now <= duration and len(seen) <= most:
        first = queue.popleft()
        seen.append((now, first[1], draws.next(bound) + min_temp))
        queue.append([first[0] + interval, first[1]])
        now = queue[0][0]
    return seen


class DrawnInTurn:
    """java.util.Random's nextInt(bound), as the JDK documents it."""

    def __init__(self, seed: int):
        self.state = (seed ^ 0x5DEECE66D) % 2**48

    def next(self, bound: int) -> int:
        while True:
            self.state = (self.state * 0x5DEECE66D + 11) % 2**48
            draw = self.state // 2**17
            if bound & -bound == bound:
                return bound * draw // 2**31
            if draw - draw % bound + (bound - 1) < 2**31:
                return draw % bound


def made(seed, **given):
    """The rows of a stream table."""
    columns = WEATHER.plan(seed, **given).table().to_pydict()
    row = namedtuple("row", columns)
    return [row(*cells) for cells in zip(*columns.values(), strict=True)]


def shortest(term):
    """A term without the decimal that YABench writes for whole numbers too."""
    return term.replace('.0"^^<http://www.w3.org/2001/XMLSchema#float>', '"^^<http://www.w3.org/2001/XMLSchema#float>')


def seen(rows, measure="AirTemperature"):
    """(time, station, value) of the observations among the rows of a stream table, in sequence order."""
    kept = [row for row in rows if row.predicate.endswith("#floatValue>") and measure in row.subject]
    kept.sort(key=lambda row: row.sequence)
    return [(row.time, int(row.subject.split("_A")[-1].split("_")[0]), row.object.split('"')[1]) for row in kept]


def test_yabench_one_station():
    rows = made(1430236808, stations=1, interval="1s", duration="20s")
    first = [(0, 27), (1031, 77), (2031, 46), (3031, 99), (4031, 42), (5031, 56), (6031, 31), (7031, 67), (8031, 83)]
    got = [(time, float(value)) for time, _, value in seen(rows)]
    assert got[:10] == [*first, (9031, 93)]
    assert got[-1] == (19031, 73)
    assert len(got) == 20


@pytest.mark.parametrize(
    ("seed", "parameters", "content"),
    [
        (
            1430236808,
            {"stations": 1, "interval": "1s", "duration": "20s"},
            "1d943885124694d4",
        ),
        (
            1430236906,
            {"stations": 50, "duration": "10s"},
            "6f0f12b09333f1db",
        ),
    ],
)
def test_files_are_those_of_yabench_byte_for_byte(tmp_path, seed, parameters, content):
    """The SHA-256 begins so of what YABench's loop writes through its template on a JVM: ``27.0^^<...#float>``."""
    file = tmp_path / "s.n3t"
    write_stream(stream_table.elements(WEATHER.plan(seed, **parameters).table()), file, "yabench")
    assert sha256(file.read_bytes()).hexdigest()[:16] == content


def test_yabench_fifty_stations():
    got = seen(made(1430236906, stations=50))
    assert len(got) == 1500
    assert got[:3] == [(0, 44, "76.0"), (53, 22, "9.0"), (57, 15, "6.0")]
    assert got[-1] == (29981, 24, "57.0")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("stations", "observations"), [(1000, 30_003), pytest.param(10_000, 300_014, marks=pytest.mark.prove)]
)
def test_yabench_counts(stations, observations):
    assert WEATHER.plan(1430236906, stations=stations).table().num_rows == 7 * observations


def test_the_seven_triples_of_an_observation():
    table = WEATHER.plan(1430236906, stations=50, duration=0).table()
    element = next(stream_table.elements(table))
    observation, measure = (f"<{SSW}{kind}_AirTemperature_A44_0>" for kind in ("Observation", "MeasureData"))
    rdf_type = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
    om_owl, weather = SSW + "ont/sensor-observation.owl#", SSW + "ont/weather.owl#"
    assert element.stream == "http://ex.org/streams/test"
    assert element.added == (
        (observation, rdf_type, f"<{weather}TemperatureObservation>"),
        (observation, f"<{om_owl}observedProperty>", f"<{weather}_AirTemperature>"),
        (observation, f"<{om_owl}procedure>", f"<{SSW}System_A44>"),
        (observation, f"<{om_owl}result>", measure),
        (measure, rdf_type, f"<{om_owl}MeasureData>"),
        (measure, f"<{om_owl}floatValue>", '"76.0"^^<http://www.w3.org/2001/XMLSchema#float>'),
        (measure, f"<{om_owl}uom>", f"<{weather}fahrenheit>"),
    )


def drawn_cases():
    draw = random.Random(20260101)
    some = [
        {
            "seed": draw.randrange(-(2**62), 2**62),
            "stations": draw.choice([1, 2, 3, 17]),
            "interval": draw.choice([1, 7, 1000, 1024]),
            "duration": draw.choice([0, 5, 999, 2500]),
            "min_temp": draw.choice([-40, 0, 3]),
            "max_temp": draw.choice([4, 100, 24]),
        }
        for _ in range(8)
    ]
    rejecting_values = {
        "stations": 5,
        "interval": 1000,
        "duration": 600_000,
        "min_temp": -(2**23),
        "max_temp": 2**23 + 1,
    }
    rejecting_offsets = {"stations": 40, "interval": 2**30 + 1, "duration": 2**31, "min_temp": 0, "max_temp": 100}
    return [*some, {"seed": 5, **rejecting_values}, {"seed": 6, **rejecting_offsets}]


@pytest.mark.slow
def test_equals_a_plain_telling_of_sg1():
    cases = drawn_cases()
    for case in cases:
        got = seen(made(**case))
        assert [(time, station, float(value)) for time, station, value in got] == sg1(**case), case


OPTIONS = [
    {},
    {"values": "walk", "late_share": 0.2, "late_bound": "3s"},
    {"arrival": "poisson", "values": "normal", "humidity": True},
    {"arrival": "bursts"},
    {"arrival": "pareto", "observes": "all", "streams": 4, "interval": 2000},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_every_option_gives_elements_with_canonical_terms(options):
    table = WEATHER.plan(12, stations=20, min_temp=-3, max_temp=4, **options).table()
    elements = list(stream_table.elements(table))
    assert [element.sequence for element in elements] == list(range(len(elements)))
    assert {len(element.added) for element in elements} == ({6, 7} if "observes" in options else {7})
    canonical = Canonical()
    objects = {triple[2] for element in elements for triple in element.added}
    assert {canonical.term(parse_term(term)) for term in objects} == set(map(shortest, objects))


def test_another_seed_gives_other_rows():
    for options in OPTIONS:
        one, other = (seen(made(seed, **options)) for seed in (1, 2))
        assert one != other


def test_late_elements_arrive_within_the_bound_and_keep_their_rows():
    plain = seen(made(3, stations=100))
    late = seen(made(3, stations=100, late_share=0.25, late_bound=700))
    assert sorted(plain) == sorted(late)
    newest, lags = 0, []
    for time, _, _ in late:
        newest = max(newest, time)
        lags.append(newest - time)
    assert 0.2 < sum(lag > 0 for lag in lags) / len(lags) < 0.3
    assert 600 < max(lags) <= 700


def test_poisson_arrivals_have_their_mean_and_variance():
    got = seen(made(4, stations=200, arrival="poisson", interval=1000, duration=50_000))
    assert len(got) == pytest.approx(200 * 50, rel=0.05)
    assert [time for time, _, _ in got] == sorted(time for time, _, _ in got)
    cells = Counter((station, time // 1000) for time, station, _ in got if time < 50_000)
    counts = [cells[station, second] for station in range(200) for second in range(50)]
    mean = sum(counts) / len(counts)
    assert sum((count - mean) ** 2 for count in counts) / len(counts) == pytest.approx(mean, rel=0.1)


def test_bursts_send_ten_intervals_within_one():
    got = seen(made(4, stations=50, arrival="bursts", interval=1000, duration=29_999))
    assert len(got) == pytest.approx(50 * 30, rel=0.02)
    assert {time // 1000 for time, _, _ in got} == {0, 10, 20}


def test_normal_values_centre_and_walks_move_by_a_degree():
    normal = [float(v) for _, _, v in seen(made(5, stations=100, values="normal"))]
    mean = sum(normal) / len(normal)
    assert mean == pytest.approx(50, abs=1)
    assert (sum((v - mean) ** 2 for v in normal) / len(normal)) ** 0.5 == pytest.approx(100 / 6, rel=0.05)
    walk = seen(made(5, stations=30, values="walk", max_temp=10))
    paths = {station: [float(v) for _, s, v in walk if s == station] for station in range(30)}
    steps = [abs(b - a) for path in paths.values() for a, b in pairwise(path)]
    assert 0.5 < max(steps) <= 1.0001
    assert all(0 <= v <= 10 for path in paths.values() for v in path)


@pytest.mark.slow
def test_humidity_follows_each_temperature():
    rows = made(6, stations=20, humidity=True)
    temperature, humidity = seen(rows), seen(rows, "RelativeHumidity")
    assert temperature == seen(made(6, stations=20))
    assert [pair[:2] for pair in temperature] == [pair[:2] for pair in humidity]
    assert {row.sequence % 2 for row in rows if "AirTemperature" in row.subject} == {0}
    assert all(0 <= float(value) <= 100 for _, _, value in humidity)


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"station": 3}, "has no parameter 'station': it has stations, interval"),
        ({"stations": 0}, "stations is 0"),
        ({"stations": "many"}, "stations is 'many': expected a whole number"),
        ({"interval": "1 fortnight"}, "interval is '1 fortnight': expected a duration"),
        ({"interval": 0}, "interval is 0"),
        ({"max_temp": 0}, "max_temp is 0: it must be above min_temp"),
        ({"max_temp": 2**25}, "max_temp is 33554432"),
        ({"arrival": "never"}, "expected one of regular, poisson, bursts"),
        ({"late_share": 0.5}, "late_bound is 0"),
        ({"late_share": 2}, "late_share is 2: expected a number from 0 to 1"),
        ({"humidity": "maybe"}, "expected true or false"),
        ({"streams": 0}, "streams is 0"),
        ({"observes": "rain"}, "expected one of temperature, all"),
        ({"static_triples": -1}, "static_triples is -1"),
    ],
)
def test_wrong_parameters_are_named(given, named):
    with pytest.raises(ParameterError, match=named.replace("(", r"\(")):
        WEATHER.plan(1, **given)


@pytest.mark.slow
def test_pareto_waits_have_their_mean_and_a_heavy_tail():
    got = seen(made(4, stations=100, arrival="pareto", interval=1000, duration="120s"))
    paths = {station: [time for time, s, _ in got if s == station] for station in range(100)}
    waits = sorted(later - before for path in paths.values() for before, later in pairwise(path))
    assert waits[0] >= 500
    assert waits[len(waits) // 2] == pytest.approx(500 * 2**0.5, rel=0.05)
    assert waits[len(waits) * 99 // 100] == pytest.approx(500 * 100**0.5, rel=0.2)


def test_streams_share_the_stations():
    one = made(6, stations=10)
    several = made(6, stations=10, streams=4)
    assert [row._replace(stream="") for row in one] == [row._replace(stream="") for row in several]
    of = {row.stream.removeprefix("http://ex.org/streams/test-"): set() for row in several}
    for row in several:
        of[row.stream[-1]].add(int(row.subject.split("_A")[-1].split("_")[0]) % 4 + 1)
    assert of == {"1": {1}, "2": {2}, "3": {3}, "4": {4}}


def test_stations_observe_everything_in_turn():
    rows = made(6, stations=9, observes="all")
    assert seen(rows) == seen(made(6, stations=9))
    assert seen(rows, "RelativeHumidity") == seen(made(6, stations=9, humidity=True), "RelativeHumidity")
    ranges = {"WindSpeed": (0, 100), "WindDirection": (0, 359), "Rainfall": (0, 40), "Visibility": (0, 110)}
    for name, (low, high) in ranges.items():
        values = [float(value) for _, _, value in seen(rows, name)]
        assert len(values) == len(seen(rows))
        assert low <= min(values) < max(values) <= high
    snow = {row.subject.split("_A")[-1].split("_")[0] for row in rows if row.object.startswith('"true"')}
    assert 0 < len(snow) < 9


@pytest.mark.parametrize("wanted", [1000, 1003, 100_000])
def test_static_data_has_as_many_triples_as_wanted(wanted):
    table = WEATHER.static_plan(7, stations=40, static_triples=wanted).table()
    triples = list(zip(*table.to_pydict().values(), strict=True))
    assert len(set(triples)) == len(triples) == wanted
    canonical = Canonical()
    assert all(canonical.term(parse_term(term)) == shortest(term) for triple in triples[:1000] for term in triple)
    stations = {s for s, p, _ in triples if p.endswith("#neighbour>")}
    assert stations == {f"<{SSW}System_A{n}>" for n in range(40)}


def test_too_little_static_data_for_the_stations_is_refused():
    assert WEATHER.static_plan(1) is None
    with pytest.raises(ParameterError, match=r"static_triples is 10: 40 stations need at least 371, or 0"):
        WEATHER.static_plan(1, stations=40, static_triples=10)


def above_50(values):
    return sum(value > 50 for value in values)


def rising_pairs(values):
    return sum(one > other for one in values for other in values)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("tests", "seed", "stations", "rows"),
    [
        ("Experiment_1/csparql/ORACLE_small*", 1430236906, 50, above_50),
        pytest.param("Experiment_1/csparql/ORACLE_medium*", 1430236906, 1000, above_50, marks=pytest.mark.prove),
        ("Experiment_4/csparql/ORACLE_non-gracious", 1430236808, 1, rising_pairs),
    ],
)
def test_yabenchs_published_window_sizes(shared_data, tests, seed, stations, rows):
    """Expected rows and input triples of every line that YABench published, both borders closed."""
    got = [(time, int(float(value))) for time, _, value in seen(made(seed, stations=stations, duration="30s"))]
    published = sorted((shared_data / "yabench" / "experiments").glob(tests))
    lines = {tuple(map(float, line.split(",")[3:7])) for file in published for line in file.read_text().split()}
    assert len(lines) >= 4
    for expected, triples, start, end in lines:
        inside = [value for time, value in got if start <= time <= end]
        assert (rows(inside), len(inside) * 7) == (expected, triples)
