"""What the paper on the TPF Query Streamer says of its figures; their values are in no file."""

from typing import Final

SOURCE: Final = (
    "Taelman, Verborgh, Colpaert, Mannens: Continuous Client-Side Query Evaluation over Dynamic Linked Data "
    "(ESWC 2016 Satellite Events)"
)

SERVER_AT_MOST: Final = 1.0
"""CPU of the server, %, at any number of clients (figure 2a); read of a master process, very likely."""

TIMES_LOWER: Final = 10.0
"""How many times lower the server's CPU is than that of C-SPARQL and CQELS, on average (section 8)."""

PEAK: Final = 80.0
SETTLED: Final = 5.0
SETTLED_AFTER_S: Final = 4
"""CPU of the clients, %: at first, and after how many seconds (figure 2b)."""

CACHE: Final = 0.56
CACHE_IDEAL: Final = 0.60
"""By how much caching reduces the execution time, and the share of static patterns, three of five (section 8)."""

NAMES: Final = {
    "incremental": "fragments, incremental",
    "streamer": "fragments, streamer",
    "streamer-no-cache": "streamer, no cache",
    "streamer-prototype-off": "streamer, cache off as the prototype",
    "polling": "polling each second",
    "live-csparql": "live as C-SPARQL",
    "live-cqels": "live as CQELS",
    "csparql": "C-SPARQL",
    "cqels": "CQELS",
    "broker": "the broker",
}
"""Systems as they are called on the page."""
