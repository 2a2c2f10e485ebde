"""First parses of a process at the same time, in several threads."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.server

PROGRAM = """
import sys
from threading import Barrier, Thread
from streamgauge.query import parse, parse_sparql

sys.setswitchinterval(1e-6)
QUERY = '''PREFIX : <http://e/> SELECT ?s (COUNT(?x) AS ?n) %s
{ ?s :p ?x . FILTER(?x > 1) OPTIONAL { ?s :q/:r* ?y } } GROUP BY ?s HAVING (COUNT(?x) > 1)'''
DEEP = "SELECT * { ?s ?p ?o FILTER(" + "(" * 60 + "?o" + ")" * 60 + ") }"
WORK = (
    lambda: parse(QUERY % "FROM STREAM :s [RANGE 5s STEP 5s]"),
    lambda: parse_sparql(QUERY % ""),
    lambda: parse_sparql(DEEP),
)
together, failures = Barrier(6), []

def first(place):
    together.wait()
    try:
        WORK[place % 3]()
    except BaseException as error:
        failures.append(f"{type(error).__name__}: {error}")

threads = [Thread(target=first, args=(place,)) for place in range(6)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
for work in WORK:
    work()
sys.exit(failures[0] if failures else 0)
"""


def fresh(processes: int) -> list[str]:
    """The failures of so many fresh processes, each of which parses first in six threads at once."""
    begun = [subprocess.Popen([sys.executable, "-c", PROGRAM], stderr=subprocess.PIPE) for _ in range(processes)]
    said = [item.communicate(timeout=60)[1].decode() for item in begun]
    return [words for item, words in zip(begun, said, strict=True) if item.returncode]


def test_first_parses_may_be_concurrent() -> None:
    assert fresh(2) == []


@pytest.mark.prove
@pytest.mark.parametrize("repetition", range(25))
def test_first_parses_may_be_concurrent_every_time(repetition: int) -> None:
    assert fresh(4) == []
