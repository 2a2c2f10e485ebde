"""The city: generated readings, CityBench's files, static data."""

from collections import Counter
from itertools import pairwise

import pytest

from streamgauge.formats import stream as stream_table
from streamgauge.formats.canonical import Canonical, parse_term
from streamgauge.formats.streams import FormatError
from streamgauge.workloads import load
from streamgauge.workloads.parameters import ParameterError

CITY = load("city")
SMALL = {"roads": 5, "garages": 3, "areas": 2, "users": 4, "duration": "20s"}

ROAD = """status,avgMeasuredTime,avgSpeed,extID,medianMeasuredTime,TIMESTAMP,vehicleCount,_id,REPORT_ID
OK,61,52,7,60,2020-03-01T10:05:00,12,901,44
OK,58,55,7,57,2020-03-01T10:10:00,0,902,44
"""
GARAGE = """vehiclecount,updatetime,_id,totalspaces,garagecode,streamtime
31,2020-03-01 10:00:00.500,1,40,NORTH,2020-03-02 09:00:00
40,2020-03-01 10:30:00.500,2,40,NORTH,2020-03-02 09:00:00
"""
AIR = """ozone,particullate_matter,carbon_monoxide,sulfure_dioxide,nitrogen_dioxide,longitude,latitude,timestamp
41,90,17,23,88,10.1,56.2,2020-03-01 10:05:00
"""
WEATHER = """hum,tempm,wspdm,TIMESTAMP
71,8.5,3.0,2020-03-01T10:05:00
"""
USER = """urn:someone|56.125,10.25
urn:someone|56.5,10.125
"""


def elements(**given):
    return list(stream_table.elements(CITY.plan(5, **given).table()))


def test_static_triples_differ():
    facts = CITY.static_plan(5, static_triples=2001, **SMALL).table()
    triples = list(zip(*facts.to_pydict().values(), strict=True))
    assert len(set(triples)) == len(triples) == 2001


def test_every_sensor_has_a_stream_and_reads_once_an_interval():
    result = elements(**SMALL)
    assert [element.sequence for element in result] == list(range(len(result)))
    assert all(before.time <= after.time for before, after in pairwise(result))
    per_stream = Counter(element.stream.removeprefix("http://ex.org/city/") for element in result)
    assert Counter(name.split("-")[0] for name in per_stream) == {
        "traffic": 5, "parking": 3, "pollution": 2, "user": 4, "weather": 1,
    }  # fmt: skip
    assert set(per_stream.values()) <= {20, 21}
    sizes = {element.stream.split("/")[-1].split("-")[0]: len(element.added) for element in result}
    assert sizes == {"traffic": 12, "parking": 4, "pollution": 4, "weather": 12, "user": 6}


def test_terms_are_canonical():
    facts = CITY.static_plan(5, static_triples=500).table().to_pydict()["object"]
    objects = {triple[2] for element in elements(**SMALL) for triple in element.added} | set(facts)
    canonical = Canonical()
    assert {canonical.term(parse_term(term)) for term in objects} == objects
    assert len({term for term in objects if term.endswith("double>")}) > 100


def test_static_data_says_what_the_streams_speak_of():
    facts = CITY.static_plan(5, **SMALL).table().to_pydict()
    known = set(facts["subject"])
    spoken = {triple[2] for element in elements(**SMALL) for triple in element.added if "bservedProperty" in triple[1]}
    assert spoken <= known


@pytest.fixture
def files(tmp_path):
    texts = {"road": ROAD, "garage": GARAGE, "air": AIR, "weather": WEATHER, "user": USER}
    for name, text in texts.items():
        (tmp_path / f"{name}.stream").write_text(text)
    return {name: tmp_path / f"{name}.stream" for name in texts}


def test_citybenchs_files_are_read(files):
    result = elements(data=", ".join(map(str, files.values())), interval="10m", speedup=60)
    read = [(element.time, element.stream.removeprefix("http://ex.org/city/"), values(element)) for element in result]
    assert read == [
        (0, "parking-1", ["9"]),
        (0, "user-1", ["56.125", "10.25"]),
        (4991, "pollution-1", ["90"]),
        (4991, "traffic-1", ["12", "52", "61"]),
        (4991, "weather-1", ["8.5", "71", "3"]),
        (9991, "traffic-1", ["0", "55", "58"]),
        (30_000, "parking-1", ["0"]),
        (600_000, "user-1", ["56.5", "10.125"]),
    ]


def values(element):
    return [triple[2].split('"')[1] for triple in element.added if triple[2].startswith('"')]


def test_two_files_of_a_kind_are_two_sensors(files, tmp_path):
    other = tmp_path / "other.stream"
    other.write_text(ROAD.replace(",12,", ",13,"))
    result = elements(data=f"{other},{files['road']}")
    first = {element.stream[-1]: values(element)[0] for element in reversed(result)}
    assert first == {"1": "13", "2": "12"}
    assert CITY.static_plan(1, data=f"{other},{files['road']}", static_triples=100).table().num_rows == 100


@pytest.mark.parametrize(
    ("file", "old", "new", "words"),
    [
        ("road", ",12,", ",many,", r"road\.stream:2: field vehicleCount is 'many': expected a whole number"),
        ("road", "2020-03-01T10:10:00", "soon", r"road\.stream:3: field TIMESTAMP is 'soon': expected a time such as"),
        ("road", "TIMESTAMP", "WHEN", r"road\.stream:1: these are not the columns of a CityBench file"),
        ("garage", "31,", ",", r"garage\.stream:2: field vehiclecount is missing"),
        ("weather", "8.5", "warm", r"weather\.stream:2: field tempm is 'warm': expected a number"),
        ("user", "56.5,10.125", "56.5", r"user\.stream:2: field longitude is missing"),
        ("air", AIR, "", r"air\.stream:1: these are not the columns"),
    ],
)
def test_a_wrong_field_is_named(files, file, old, new, words):
    files[file].write_text(files[file].read_text().replace(old, new, 1))
    with pytest.raises(FormatError, match=words):
        CITY.plan(1, data=str(files[file]))


def test_no_file(tmp_path):
    with pytest.raises(FormatError, match=r"nowhere\.stream: there is no such file"):
        CITY.plan(1, data=str(tmp_path / "nowhere.stream"))


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"roads": 0}, "roads is 0"),
        ({"static_triples": 5}, "static_triples is 5: these sensors need at least 87"),
        ({"cars": 1}, "has no parameter 'cars'"),
    ],
)
def test_wrong_parameters_are_named(given, named):
    with pytest.raises(ParameterError, match=named):
        CITY.static_plan(1, **given)
