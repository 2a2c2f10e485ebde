"""What departures are called and what is said of them (Taelman et al., ESWC 2016, section 4).

The property names are the prototype's, which its recorded data and queries have; the paper's listings end in ``/``.
"""

T = "http://example.org/train#"
TD = "http://example.org/traindata#"
STREAM = "http://example.org/streams/departures"

PROPERTIES = ("delay", "platform", "departureTime", "headSign", "routeLabel")
"""Of a departure, in the order of the paper's query; a station has ``hasDeparture`` beside."""

DAY = 1_417_824_000
"""What the stream's time 0 is as a time of departure, s since 1970: 2014-12-06T00:00:00Z, the recorded day."""
