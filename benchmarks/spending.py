"""Where `live` spends its time on the pipe: decoding lines, evaluating, encoding answers, by function."""

import cProfile
import io
import pstats
from collections import Counter
from collections.abc import Iterable

from streamgauge.formats.lines import encode_advance, encode_element
from streamgauge.formats.task import encode_task
from streamgauge.harness.host import serve
from streamgauge.harness.systems.pipe import task_of
from streamgauge.model.element import StreamElement
from streamgauge.model.run import RunHeader

PLACES = (
    ("decoding elements", ("decode_input", "_triples", "raw_decode", "'split' of 'str'", "_laid_out")),
    ("encoding answers", ("encode_answer", "iterencode", "encode_basestring", "c_make_encoder")),
)
"""Names of functions that belong to the wire, by part."""


def profiled(header: RunHeader, stream: Iterable[StreamElement], shown: int = 15) -> None:
    """Print the shares of own time by part, and the functions that take most."""
    lines = [encode_task(task_of(header)), *map(encode_element, stream), encode_advance(header.advanced_to)]
    given = io.BufferedReader(io.BytesIO(b"".join(lines)))
    del lines
    profile = cProfile.Profile()
    profile.enable()
    serve("live", given, io.BytesIO())
    profile.disable()
    stats = pstats.Stats(profile)
    parts: Counter[str] = Counter()
    own: Counter[str] = Counter()
    for (file, line, name), (_, _, spent, *_) in stats.stats.items():  # type: ignore[attr-defined]
        part = next((part for part, names in PLACES if any(each in name for each in names)), "evaluating")
        parts[part] += spent
        own[f"{file.rpartition('streamgauge/')[2]}:{line} {name}"] += spent
    whole = sum(parts.values())
    for part, spent in parts.most_common():
        print(f"{part}: {spent / whole:.0%} of {whole:.1f} s (profiled)")
    for name, spent in own.most_common(shown):
        print(f"  {spent / whole:6.1%}  {name}")
