"""Peak of resident memory (MiB) of this process, the interpreter and what it imports in it, while it answers a select.

python -m benchmarks.in_process_memory STATIONS SECONDS SLIDE

The stream is made as it is fed. Nothing is imported but the evaluator and the maker of the stream.
"""

import sys

import psutil

from benchmarks.stations import RUNS, observations, window_query
from streamgauge.engines import live

LOOKS = 100
"""How often in a second of stream memory is looked at, beside in every answer."""


def main() -> None:
    stations, seconds, slide = map(int, sys.argv[1:])
    process, peaks = psutil.Process(), list[int]()

    def look(*_: object) -> None:
        peaks.append(process.memory_info().rss)

    session = live.start(window_query("select", 5000, slide), RUNS[0][1], look)
    for second in range(seconds):
        for at, element in enumerate(observations(stations, second)):
            session.push(element)
            if at % (stations // LOOKS + 1) == 0:
                look()
    session.advance(seconds * 1000 - 1000)
    look()
    print(f"{max(peaks) / 2**20:.0f}")


if __name__ == "__main__":
    main()
