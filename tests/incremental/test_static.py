"""Static data beside a query may be a file: it is gone through, and only what the patterns ask for is kept."""

import tracemalloc

from streamgauge.engines import live
from streamgauge.formats.pipe import StaticFile
from streamgauge.model.element import StreamElement
from streamgauge.query import parse
from streamgauge.semantics.profiles import PROFILES

QUERY = """SELECT ?o ?r FROM NAMED WINDOW <urn:w> ON <urn:s> [RANGE PT5S STEP PT5S]
WHERE { ?s <urn:in> ?r . WINDOW <urn:w> { ?o <urn:of> ?s } }"""
UNREAD = 20_000


def test_static_triples_of_a_file_that_nobody_asks_for_are_not_kept(tmp_path):
    lines = [f'<urn:s{n}> <urn:label> "a station with the number {n}" .\n' for n in range(UNREAD)]
    (tmp_path / "static.nt").write_text("<urn:s1> <urn:in> <urn:r1> .\n" + "".join(lines))
    results = []
    query = parse(QUERY).with_static(StaticFile(tmp_path / "static.nt"))
    live.start(query, PROFILES["rspql"], results.append).close()  # what is loaded once
    tracemalloc.start()
    session = live.start(query, PROFILES["rspql"], results.append)
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert held < 50 * UNREAD, f"{held} bytes: less than the strings of the triples alone"
    session.push(StreamElement("urn:s", 0, 0, (("<urn:o>", "<urn:of>", "<urn:s1>"),)))
    session.advance(5000)
    session.close()
    assert [answer.added for answer in results] == [(("<urn:o>", "<urn:r1>"),)]
