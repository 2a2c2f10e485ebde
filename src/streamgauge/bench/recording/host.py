"""A process of its own for an engine written in Python: JSON lines in, JSON lines out (DESIGN, section 5)."""

import gc
import json
import sys
from typing import BinaryIO

from streamgauge.bench.recording.feed import READY
from streamgauge.engines import load
from streamgauge.model.answer import Answer
from streamgauge.query import parse
from streamgauge.wire.lines import Advance, decode_input, encode_answer
from streamgauge.wire.semantics import from_json


def main() -> int:
    """Run the engine named on the command line until standard input ends; its first line is the task."""
    return serve(sys.argv[1], sys.stdin.buffer, sys.stdout.buffer)


def serve(name: str, lines: BinaryIO, out: BinaryIO) -> int:
    """Answer one task: a line with query, dialect, semantics and static triples, then elements and advances."""
    task = json.loads(lines.readline())
    query = parse(task["query"], task["dialect"])
    if task.get("static"):
        query = query.with_static(tuple(tuple(triple) for triple in task["static"]))
    waiting: list[bytes] = []

    def emit(answer: Answer) -> None:
        waiting.append(encode_answer(answer))

    session = load(name).start(query, from_json(task["semantics"]), emit)
    out.write(READY)
    out.flush()
    gc.collect()
    gc.freeze()
    for line in lines:
        given = decode_input(line)
        if isinstance(given, Advance):
            session.advance(given.time)
        else:
            session.push(given)
        if waiting:
            out.write(b"".join(waiting))
            out.flush()
            waiting.clear()
    session.close()
    out.write(b"".join(waiting))
    out.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
