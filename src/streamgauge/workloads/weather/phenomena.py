"""What a station observes: the phenomena of LinkedSensorData (SRBench, section 3), temperature first.

Temperatures come from the schedule; everything else is drawn by station and time. A station has a climate of its own
(how windy, how wet, how clear), so that what lasts, such as a hurricane or a blizzard, is seen here and there.
"""

from typing import NamedTuple

import numpy as np

from streamgauge.workloads import draws
from streamgauge.workloads.draws import Ints


class Phenomenon(NamedTuple):
    """A property, its class of observations, its unit (``None`` for a truth value), and how its values are drawn.

    A value is the station's own base (below ``bases``) plus a draw below ``spread``, in whole units.
    """

    name: str
    kind: str
    unit: str | None
    bases: int = 0
    spread: int = 0
    purpose: str = ""

    def drawn(self, seed: int, station: Ints, time: Ints, value: Ints) -> Ints:
        """The values in tenths; the temperature's are there already."""
        if not self.spread:
            return value
        purpose = self.purpose or self.name
        base = draws.below(self.bases, seed, f"{purpose} base", station) if self.bases else np.zeros_like(station)
        drawn = draws.below(self.spread, seed, purpose, station, time)
        return (base + drawn if self.unit else np.where(base == 0, drawn, 0)) * 10


TEMPERATURE = Phenomenon("AirTemperature", "TemperatureObservation", "fahrenheit")
HUMIDITY = Phenomenon("RelativeHumidity", "RelativeHumidityObservation", "percentage", 0, 101, "humidity")

PHENOMENA = (
    TEMPERATURE,
    HUMIDITY,
    Phenomenon("WindSpeed", "WindSpeedObservation", "milesPerHour", 80, 21),
    Phenomenon("WindDirection", "WindDirectionObservation", "degrees", 300, 60),
    Phenomenon("Rainfall", "RainfallObservation", "centimeters", 30, 11),
    Phenomenon("Visibility", "VisibilityObservation", "centimeters", 90, 21),
    Phenomenon("Snowfall", "SnowfallObservation", None, 3, 8),
)
"""All of them, in the order in which a station reports them; it snows, mostly, at one station of three."""

SETS = {"temperature": (TEMPERATURE,), "humidity": (TEMPERATURE, HUMIDITY), "all": PHENOMENA}
"""What a station reports each time."""
