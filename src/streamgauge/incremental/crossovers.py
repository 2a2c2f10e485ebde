"""The numbers that decide how something is joined: each with what it decides, and where it was measured or chosen.

All ways give the same answers; the numbers decide which one is cheaper. ``python -m benchmarks.speed --before`` runs
the cases named here beside another state, ``python -m benchmarks.shapes`` the shapes.
"""

from typing import Final

COLUMNAR_CHANGE: Final = 300
"""Triples of a change that cost as much one by one as the change does in columns. Chosen; see
select_arrow_change_small_first and select_arrow_sliding_small_first."""

COLUMNAR_PATTERNS: Final = 4
"""Groups of patterns that cost as much one by one as ``COLUMNAR_CHANGE`` says: of more, a change must be larger, as
only joins one by one share what differs in conditions alone. Chosen; see ``python -m benchmarks.live --parts queries``.
"""

WHOLE_LOOKS: Final = 3
"""Looks that may see one triple for contents to be looked at whole. Measured: a star costs the same at 3 to 4 looks
either way, a self-join at more than 5 (``python -m benchmarks.live``)."""

BY_NUMBERS: Final = 2_000
"""Triples of a content, or rows of a change, from which on the numbers of terms are joined, counted and grouped instead
of terms. Measured: lists of terms are faster at 350 triples, numbers at 3,500, in half of the time (select_arrow); rows
that are there twice are counted in 1.2 of the time at 300 and in 0.6 at 2,000."""

FEW_ROWS: Final = 32
"""Rows of one key that are gone through one by one: more are sorted, put in order, aggregated together, or have another
plan. Measured for MAX (the same either way at 32 rows a group; AVG gains from 16 on); else chosen, see the shapes on
hubs, as same_room_greater_hub, exists_band_hub and path_hub."""

SCANS: Final = 4
"""How often more rows of a key are tested one by one before they are put in order: the shape above_own_average."""

SPARSE: Final = 16
"""Terms or spans for each of a join from which on neither a table of all terms nor sorting is worth it. Chosen; see
select_arrow and variation_change."""

ROWS_TOGETHER: Final = 1_000_000
"""Rows of one join in columns from which on the triples that it goes out from are halved. Chosen, for memory."""

WASTED_ROWS: Final = 100
"""Rows that joins in columns make for each triple that comes and row that is found, from which on columns are left.
Chosen; see the shape same_room_greater_hub."""

SKEW_CHUNK: Final = 512
"""Triples that enter before keys with many rows are looked for, at most. Chosen; see same_room_greater_hub."""

SPARE_TERMS: Final = 40_000
"""Terms that may be forgotten before it is worth numbering the others anew. Chosen; see ``python -m benchmarks.soak``.
"""

PIECES: Final = 8
"""Pieces of the time from one window to the next, at least. Chosen; see select_sliding."""

RESTART_SHARE: Final = 8
"""One of so many edges, or starts, that changes: from there on all that it touches is followed again. Chosen; see the
shapes path_plus_chain and path_star."""

REMEMBERED_VALUES: Final = 20_000
"""Values whose places in an order, or exact units, are remembered. Chosen; see average_change and same_room_greater."""

REMEMBERED_RESULTS: Final = 100_000
"""Results that the cache of one condition remembers. Chosen; see the shapes with distinct values."""
