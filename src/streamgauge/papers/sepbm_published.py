"""What the SEP-BM paper gives in numbers (Murth et al., 2010); figures 4 to 7 themselves are images."""

from typing import Final

SOURCE: Final = (
    "Martin Murth, Dietmar Winkler, Stefan Biffl, eva Kühn and Thomas Moser: Performance Testing of Semantic "
    "Publish/Subscribe Systems (2010)"
)
AVERAGE_MS: Final = {"reevaluate": 1013.0, "stringrs": 461.0, "graphss": 260.0}
"""Section 4.2: average notification times of all notifications of the benchmark, by strategy."""

FACTOR: Final = {"stringrs": 1.76, "graphss": 5.9}
"""Section 4.2: by what the average throughput of the ten slow channels grew."""

SLOW_MS: Final = (316.0, 3407.0)
"""Section 4.1: the notification times of the ten slow channels, from and to."""

SLOWEST: Final = ("q14", "q15", "q16", "q17", "q19", "q20")
"""Section 4.1: channels whose notification times are 2 seconds and above."""

NOT_GUESSED: Final = "q17"
"""Section 4.2: where GraphSS cannot help, as only the texts of graphs and notifications are similar."""

STATEMENTS: Final = {2: "287,897", 10: "1.6 million"}
"""Explicit statements of the Extended Data Set by universities (sections 3.1 and 4.1)."""

CLOSED: Final = "2.4 million"
"""With what the ontology implies, 10 universities (section 4.1)."""
