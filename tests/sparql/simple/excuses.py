"""Known differences between the evaluators and SPARQL 1.1, each with the item of issue 15 that ends it.

To be emptied: ``excused``, of a drawn case, ``PENDING`` as names in cases.toml -> evaluators (or "parser").
"""

from tests.sparql.simple.drawn import Case


def excused(case: Case, evaluator: str) -> bool:
    """Item 7: ``GRAPH ?g`` with ?g inside, on the incremental evaluator and on Spark."""
    return evaluator != "definition" and "Graph(name=Var" in str(case.form)


PENDING: dict[str, tuple[str, ...]] = {
    "graph variable as an object inside OPTIONAL": (
        "changes",
        "snapshots",
    ),  # item 7
    "graph variable is not bound inside": (
        "changes",
        "snapshots",
    ),  # item 7
    "graph variable is not bound inside, negated": (
        "changes",
        "snapshots",
    ),  # item 7
    "graph variable and inline data without triples": (
        "changes",
        "snapshots",
    ),  # item 7
    "graph variable read by BIND inside": (
        "changes",
        "snapshots",
    ),  # item 7
    "graph variable as both ends of a path": (
        "changes",
        "snapshots",
    ),  # item 7
    "the name of a group key given to a variable": ("parser",),  # item 7
}
