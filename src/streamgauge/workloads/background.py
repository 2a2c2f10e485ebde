"""Static data in sections: known triples first, then what is said of each thing of a kind, as many as are wanted."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from streamgauge.model.terms import Triple
from streamgauge.workloads.draws import Ints
from streamgauge.workloads.plan import TRIPLE_SCHEMA, Statement, TablePlan, exploded, unchanged


class Section(NamedTuple):
    """Things of a kind, numbered from ``first`` on, of each of which so many ``triples`` are said."""

    first: int
    things: int
    triples: int
    said: Callable[[Ints], list[Statement]]


def background_plan(known: Sequence[Triple], sections: Sequence[Section], wanted: int) -> TablePlan:
    """The plan of the first ``wanted`` triples of all that the sections say after what is known."""
    ends = list(accumulate((section.things for section in sections), initial=1 if known else 0))
    kept = tuple(section for section in sections if section.things)
    begins = tuple(begin for begin, section in zip(ends, sections, strict=False) if section.things)
    before = accumulate((each.things * each.triples for each in kept), initial=len(known))
    drawing = _Drawing(tuple(known), kept, begins, tuple(before), wanted)
    most = max([len(known), *(each.triples for each in kept)])
    return TablePlan(ends[-1], wanted, TRIPLE_SCHEMA, TRIPLE_SCHEMA, drawing, unchanged, most)


@dataclass(frozen=True, slots=True)
class _Drawing:
    """Id 0 is what is known, if something is; ``begins`` are the first ids of the sections, ``before`` the triples."""

    known: tuple[Triple, ...]
    sections: tuple[Section, ...]
    begins: tuple[int, ...]
    before: tuple[int, ...]
    wanted: int

    def __call__(self, ids: Ints) -> Iterator[pa.RecordBatch]:
        """The triples of some ids, in order."""
        if self.known and 0 in ids:
            columns = [pa.array(column, pa.string()) for column in zip(*self.known[: self.wanted], strict=True)]
            yield pa.RecordBatch.from_arrays(columns, schema=TRIPLE_SCHEMA)
        for section, begin, before in zip(self.sections, self.begins, self.before, strict=False):
            of = ids[(ids >= begin) & (ids < begin + section.things)] - begin
            if len(of):
                found = exploded([(np.arange(len(of)), section.said(of + section.first))])
                place = before + of[found.row] * section.triples + found.position
                rows = pa.RecordBatch.from_arrays(list(found.triples), schema=TRIPLE_SCHEMA)
                yield rows.filter(pa.array(place < self.wanted))
