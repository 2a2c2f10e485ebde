"""Show the joins that are generated for a query: ``python -m streamgauge.incremental [--standing] QUERY``."""

import argparse
from collections.abc import Iterator
from typing import Any

from streamgauge.incremental.budget import ChangeBudget
from streamgauge.incremental.evaluator import KeptAnswer
from streamgauge.incremental.facts.facts import Facts
from streamgauge.incremental.facts.shapes import ShapePool
from streamgauge.incremental.ir import text_of
from streamgauge.incremental.operators import Bag, Take
from streamgauge.incremental.plan import BgpRequest, plan_all
from streamgauge.incremental.window_joins import generate
from streamgauge.model.algebra import QueryForm
from streamgauge.query import parse_sparql


def main() -> None:
    """Print the generated modules, each once."""
    parser = argparse.ArgumentParser(prog="python -m streamgauge.incremental", description=__doc__)
    parser.add_argument("query", help="SPARQL")
    parser.add_argument("--standing", action="store_true", help="over facts that stand until they are deleted")
    arguments = parser.parse_args()
    print(*generated(parse_sparql(arguments.query), arguments.standing), sep="\n", end="")


def generated(form: QueryForm, standing: bool = False) -> list[str]:
    """The texts of the modules that are generated for patterns over the default graph; UnsupportedError."""
    requests: list[BgpRequest] = []

    def leaf(request: BgpRequest) -> Take:
        """Record a request; there are no solutions."""
        if request.graph is None:
            requests.append(request)
        return dict

    # Building the answer is what requests the patterns; nothing is evaluated.
    KeptAnswer(form, leaf, names=None if standing else ())
    functions = _over_facts(requests) if standing else _over_windows(requests)
    return list(dict.fromkeys(map(text_of, functions)))


def _over_windows(requests: list[BgpRequest]) -> Iterator[Any]:
    bags: list[Bag] = [{} for _ in requests]
    joins = generate(plan_all(requests), [request.output for request in requests], bags)
    return iter((joins.enter, joins.leave))


def _over_facts(requests: list[BgpRequest]) -> Iterator[Any]:
    pool = ShapePool(Facts(), ChangeBudget())
    for request in requests:
        yield from pool.joins(request)[0].functions()


if __name__ == "__main__":
    main()
