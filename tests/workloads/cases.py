"""Streams and static data of every kind, small, each with the digest of its rows as Spark's expressions made them."""

from hashlib import sha256
from typing import NamedTuple

import pyarrow as pa

from streamgauge.workloads import load
from streamgauge.workloads.plan import TablePlan


class Case(NamedTuple):
    """A table of a workload: seed and parameters, how many rows it has, and the beginning of their digest."""

    workload: str
    seed: int
    given: dict[str, object]
    rows: int
    digest: str

    @property
    def stream(self) -> TablePlan:
        """The plan of its stream."""
        return load(self.workload).plan(self.seed, **self.given)  # type: ignore[attr-defined]

    @property
    def static(self) -> TablePlan:
        """The plan of its static data."""
        return load(self.workload).static_plan(self.seed, **self.given)  # type: ignore[attr-defined]


def digest(table: pa.Table) -> str:
    """The first 16 digits of the SHA-256 of a table's rows, cells separated by tabs."""
    result = sha256()
    for batch in table.to_batches():
        for row in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            result.update(("\t".join(map(str, row)) + "\n").encode())
    return result.hexdigest()[:16]


STREAMS = (
    Case("weather", 11, {"stations": 13, "duration": "9s"}, 819, "cafa2a4465ce79d8"),
    Case(
        "weather",
        -5,
        {"stations": 13, "duration": "9s", "values": "walk", "late_share": 0.2, "late_bound": "3s"},
        819,
        "d03cd9524072b922",
    ),
    Case(
        "weather",
        1099511627783,
        {"stations": 13, "duration": "9s", "arrival": "poisson", "values": "normal", "humidity": True},
        1582,
        "9c98658c1addd041",
    ),
    Case(
        "weather",
        -2305843009213693952,
        {"stations": 13, "duration": "9s", "arrival": "bursts"},
        896,
        "1102732221c62811",
    ),
    Case(
        "weather",
        1430236906,
        {"stations": 13, "duration": "9s", "arrival": "pareto", "observes": "all", "streams": 4, "interval": 2000},
        3264,
        "043c5b5116fbbfcc",
    ),
    Case(
        "weather",
        11,
        {"stations": 13, "duration": "9s", "values": "walk", "min_temp": -30, "max_temp": -7},
        819,
        "c06b42ec6e7f56b9",
    ),
    Case(
        "weather",
        -5,
        {
            "stations": 13,
            "duration": "9s",
            "values": "normal",
            "min_temp": -30,
            "max_temp": 7,
            "late_share": 0.5,
            "late_bound": 10,
        },
        819,
        "76ef5321fbd357e1",
    ),
    Case(
        "weather",
        1099511627783,
        {"stations": 13, "duration": 600, "arrival": "poisson", "values": "walk", "interval": 17},
        3108,
        "38647e26b8f35b25",
    ),
    Case(
        "weather",
        -2305843009213693952,
        {"stations": 13, "duration": "9s", "arrival": "bursts", "values": "walk", "observes": "all"},
        6144,
        "69795dd1f6b586dc",
    ),
    Case(
        "weather",
        1430236906,
        {"stations": 13, "duration": 100, "arrival": "pareto", "values": "walk", "interval": 3},
        4172,
        "7b76e14f2a96b2cd",
    ),
    Case(
        "weather", 11, {"stations": 13, "duration": 50, "arrival": "poisson", "interval": 1}, 2856, "3870707bdd28e97c"
    ),
    Case("weather", -5, {"stations": 40, "duration": 2147483648, "interval": 1073741825}, 560, "d9b8147196d6d7fd"),
    Case(
        "weather",
        1099511627783,
        {"stations": 5, "duration": 600000, "min_temp": -8388608, "max_temp": 8388609},
        21000,
        "89fb8f9f762e9122",
    ),
    Case("weather", -2305843009213693952, {"stations": 3, "duration": 0, "observes": "all"}, 48, "f9026ce3cfc0dbc3"),
    Case(
        "weather",
        1430236906,
        {"stations": 13, "duration": 20, "arrival": "pareto", "interval": 1},
        1799,
        "d222cf25d5cce5a6",
    ),
    Case(
        "weather",
        11,
        {
            "stations": 13,
            "duration": "9s",
            "late_share": 1.0,
            "late_bound": 1,
            "stream": "urn:x",
            "streams": 3,
            "humidity": "true",
            "max_temp": 64,
        },
        1638,
        "68c58df1d4c38ba0",
    ),
    Case("city", 5, {"roads": 5, "garages": 3, "areas": 2, "users": 4, "duration": "20s"}, 2320, "78224174e1dcc5f5"),
    Case("city", 34359738368, {"interval": 7, "duration": 99}, 1008, "9f735fc613a2a26c"),
    Case("city", -3, {"duration": 0}, 0, "e3b0c44298fc1c14"),
    Case(
        "trains",
        7,
        {"stations": 3, "per_hour": 40, "ahead": "30m", "update": "5s", "duration": "30s"},
        838,
        "12024abd74c8ddee",
    ),
    Case(
        "trains",
        -7,
        {
            "per_hour": 600,
            "ahead": "1h",
            "duration": "60s",
            "update": "2s",
            "platform_changes": 0.05,
            "delay_changes": 0.2,
            "delayed": 1.0,
        },
        37206,
        "c6e9274f3152ad39",
    ),
    Case(
        "trains",
        8589934592,
        {"duration": "10m", "update": "1m", "speedup": 60, "dynamic": "delay,departureTime,headSign,routeLabel"},
        872,
        "e50170e94c998455",
    ),
    Case("trains", 1, {"dynamic": "none"}, 0, "e3b0c44298fc1c14"),
    Case(
        "trains",
        1,
        {"duration": "0s", "per_hour": 3600, "ahead": "7m", "dynamic": "departureTime"},
        420,
        "a0d4794885622846",
    ),
)
STATIC = (
    Case("weather", 7, {"stations": 40, "static_triples": 371}, 371, "0cf37fe280386639"),
    Case("weather", 7, {"stations": 40, "static_triples": 1003}, 1003, "d284e93747e85e27"),
    Case("weather", 7, {"stations": 40, "static_triples": 5000}, 5000, "87b7faeb833ef6ae"),
    Case("weather", 1099511627776, {"stations": 1, "static_triples": 60}, 60, "030c93a205e886ae"),
    Case(
        "city",
        5,
        {"roads": 5, "garages": 3, "areas": 2, "users": 4, "duration": "20s", "static_triples": 200},
        200,
        "34abec6075183c28",
    ),
    Case(
        "city",
        5,
        {"roads": 5, "garages": 3, "areas": 2, "users": 4, "duration": "20s", "static_triples": 777},
        777,
        "06c38e19eac84ea4",
    ),
    Case("city", 34359738368, {"interval": 7, "duration": 99, "static_triples": 200}, 200, "3b7cb08e8f33da0f"),
    Case("city", 34359738368, {"interval": 7, "duration": 99, "static_triples": 777}, 777, "7076d8d0b0bc9675"),
    Case("city", -3, {"duration": 0, "static_triples": 200}, 200, "896a8616dbe4eea2"),
    Case("city", -3, {"duration": 0, "static_triples": 777}, 777, "290a30f27e6de1d8"),
    Case(
        "trains",
        7,
        {"stations": 3, "per_hour": 40, "ahead": "30m", "update": "5s", "duration": "30s"},
        244,
        "e0baf90631a8715a",
    ),
    Case(
        "trains",
        -7,
        {
            "per_hour": 600,
            "ahead": "1h",
            "duration": "60s",
            "update": "2s",
            "platform_changes": 0.05,
            "delay_changes": 0.2,
            "delayed": 1.0,
        },
        2440,
        "09feb43aa2e41667",
    ),
    Case(
        "trains",
        8589934592,
        {"duration": "10m", "update": "1m", "speedup": 60, "dynamic": "delay,departureTime,headSign,routeLabel"},
        360,
        "963b88a624877e2a",
    ),
    Case("trains", 1, {"dynamic": "none"}, 114, "c5213b4f08c1d7db"),
    Case(
        "trains",
        1,
        {"duration": "0s", "per_hour": 3600, "ahead": "7m", "dynamic": "departureTime"},
        2100,
        "4fb22868351de86b",
    ),
)
