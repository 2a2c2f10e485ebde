"""Set functions of SPARQL 1.1 (18.5.1) over the values of one group."""

from collections.abc import Sequence

from streamgauge.model.terms import Term


def aggregate(
    function: str, values: Sequence[Term | None], *, distinct: bool = False, separator: str = " "
) -> Term | None:
    """COUNT, SUM, AVG, MIN, MAX, SAMPLE or GROUP_CONCAT; ``None`` among the values is an error or unbound."""
    raise NotImplementedError
