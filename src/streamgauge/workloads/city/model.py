"""What the city's sensors are called and what they observe.

A reading has the columns of READING: the values are in SEEN, in the order of KINDS, as N-Triples terms; the last two
are where a user is.
"""

import pyarrow as pa

CITY = "http://ex.org/city/"
CT = "http://www.insight-centre.org/citytraffic#"
SSN = "http://purl.oclc.org/NET/ssnx/ssn#"
SAO = "http://purl.oclc.org/NET/sao/"

KINDS = {
    "traffic": ("CongestionLevel", "AverageSpeed", "EstimatedTime"),
    "parking": ("ParkingVacancy",),
    "pollution": ("AirPollutionIndex",),
    "weather": ("Temperature", "Humidity", "WindSpeed"),
    "user": ("Location",),
}
"""The kinds of sensors with the classes of what they observe.

Congestion is the number of vehicles counted (as CityBench's files give it), speed in km/h, time in s; vacancies; an
index, the worst of five gases; degrees C, %, m/s.
"""

SEEN = ("seen0", "seen1", "seen2")
"""The columns of a reading's values; the last ones are null where a sensor observes less."""

READING = pa.schema(
    [
        ("kind", pa.string()),
        ("sensor", pa.int64()),
        ("time", pa.int64()),
        *((name, pa.string()) for name in (*SEEN, "Latitude", "Longitude")),
    ]
)
"""The time is in ms."""
