"""Small recorded files, made by hand, for the importers."""

import json
from pathlib import Path

QUERY = """REGISTER QUERY q AS SELECT ?s ?v FROM STREAM <http://ex.org/streams/test> [RANGE 5s STEP 5s]
WHERE { ?s <http://ex.org/value> ?v FILTER(?v > ${LEAST}) }"""

SG = """<http://ex.org/a> <http://ex.org/value> 76.0^^<http://www.w3.org/2001/XMLSchema#float> "0" .
<http://ex.org/b> <http://ex.org/value> 10.0^^<http://www.w3.org/2001/XMLSchema#float> "1000" .
<http://ex.org/c> <http://ex.org/value> 80.5^^<http://www.w3.org/2001/XMLSchema#float> "6000" .
"""

QR = (
    "1430236808000\n"
    "s\tv\t\n"
    "1430236813020\n"
    "http://ex.org/a\t76.0^^http://www.w3.org/2001/XMLSchema#float\t\n"
    "1430236818005\n"
    'http://ex.org/c\t"80.5"^^<http://www.w3.org/2001/XMLSchema#float>\t\n'
)

P = "C-SPARQL\ntime,rss_mem,cpu_percent,mem_percent,threads\n0.0,10.5,134.56,0.19,21.00\n0.5,80.0,138.5,0.75,22\n"

CONFIG = {
    "exec.engine": "engine.jar",
    "generator": "SG1",
    "seed": "1",
    "enginename": "C-SPARQL",
    "vars": {"LEAST": "50.0", "WSIZE": "5s", "WPOLICY": "onwindowclose"},
    "tests": [{"name": "small", "runs": "2"}, {"name": "other", "vars": {"LEAST": "0.0"}}],
}


def literal(value: str, datatype: str = "float") -> dict[str, str]:
    """A typed literal in SPARQL results JSON."""
    return {"type": "literal", "value": value, "datatype": f"http://www.w3.org/2001/XMLSchema#{datatype}"}


def relation(timestamp: int, *rows: tuple[str, str]) -> dict[str, object]:
    """One relation of CSRBench's answers."""
    bindings = [
        {"timestamp": timestamp, "binding": {"s": {"type": "uri", "value": s}, "v": literal(v)}} for s, v in rows
    ]
    return {"head": {"vars": ["s", "v"]}, "timestamp": timestamp, "results": {"bindings": bindings}}


def answers(path: Path, *relations: object) -> Path:
    """An answer file."""
    path.write_text(json.dumps({"relations": relations}))
    return path


def folder(root: Path) -> Path:
    """A YABench test folder with two runs of its first test and none of the other."""
    (root / "results").mkdir(parents=True)
    (root / "config.json").write_text(json.dumps(CONFIG))
    (root / "engine.query").write_text(QUERY.replace("5s STEP 5s", "${WSIZE} STEP ${WSLIDE}"))
    (root / "oracle.query").write_text("SELECT ?s ?v { ?s <http://ex.org/value> ?v FILTER(?v > ${LEAST}) }")
    for run in (1, 2):
        (root / "results" / f"SG_small{run}").write_text(SG)
        (root / "results" / f"QR_small{run}").write_text(QR)
    (root / "results" / "P_small1").write_text(P)
    return root
