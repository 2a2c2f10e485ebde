"""A broker in a process of its own, which publishes and says what was acknowledged until it is killed."""

import sys
from pathlib import Path

from streamgauge.servers.broker.sqlite import SqliteJournal
from tests.servers.broker.world import BASE, QUERIES, broker, select, student


def main(path):
    made = broker(journal=SqliteJournal(Path(path)))
    if not made.channels():
        made.load(BASE)
        for name, pattern in QUERIES.items():
            made.create_channel(name, select(pattern))
            made.subscribe(name, "me", lambda: None)
    first = int(sys.stdin.readline())
    for n in range(first, 10_000):
        receipt = made.publish(student(n), key=f"k{n}")
        print(n, receipt.number, flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
