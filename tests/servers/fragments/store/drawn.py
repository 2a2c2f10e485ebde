"""Changes of a small data set as Hypothesis draws them."""

from dataclasses import dataclass
from itertools import product

from hypothesis import strategies as st

from streamgauge.servers.fragments import ExpiringQuad, Match, Quad

SUBJECTS = [f"<urn:s{number}>" for number in range(6)]
PREDICATES = ["<urn:p>", "<urn:q>"]
OBJECTS = ['"1"', '"é\\n"@en', "<urn:longer>", '"long"', "<urn:s1>"]
GRAPHS = ["", "<urn:g>", "<urn:h>"]
SHAPES = list(product((False, True), repeat=4))

quads: st.SearchStrategy[Quad] = st.tuples(*map(st.sampled_from, (SUBJECTS, PREDICATES, OBJECTS, GRAPHS)))
ends = st.none() | st.integers(95, 125)


@dataclass(frozen=True)
class Step:
    """A change, how long after the last it is made (ms), and whether a restart follows."""

    removed: list[Quad]
    added: list[ExpiringQuad]
    later: int
    restart: bool


steps = st.builds(
    Step,
    st.lists(quads, max_size=12),
    st.lists(st.tuples(quads, ends), max_size=25),
    st.sampled_from((0, 1, 5)),
    st.booleans(),
)


def all_matches(quad: Quad) -> list[Match]:
    """The quad's matches in all 16 shapes."""
    return [tuple(term if given else None for term, given in zip(quad, shape, strict=True)) for shape in SHAPES]
