"""SPARQL Update of a data set: its operations over facts, with skolem IRIs of the server turned into blank nodes."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from streamgauge.model.terms import Term, Triple
from streamgauge.query.traversal import with_parts
from streamgauge.query.updates import UpdateContext, UpdateOperation, read_update
from streamgauge.servers.fragments.pages.terms import unskolemised
from streamgauge.servers.http.protocol import ProtocolRequest


def read_local_update(
    sent: ProtocolRequest, start: str, base: str, now: Term, take: Callable[[], None]
) -> list[UpdateOperation]:
    """The operations of an update at the time ``now``; labels of new blank nodes begin with ``start``.

    ``base`` is the server's address; ``take`` is called for each triple of data, and may raise. QueryError.
    """
    names: dict[str, Term] = {}
    context = UpdateContext(lambda name: names.setdefault(name, f"_:{start}b{len(names)}"), False, sent.graphs, now)
    operations = read_update(sent.text, context)
    for operation in operations:
        for _ in (*operation.removed, *operation.added):
            take()
    return [_local(operation, base) for operation in operations]


def _local(operation: UpdateOperation, base: str) -> UpdateOperation:
    """The operation with blank nodes in place of their skolem IRIs."""
    local = partial(unskolemised, base=base)

    def fact(triple: Triple) -> Triple:
        return local(triple[0]), triple[1], local(triple[2])

    return replace(
        operation,
        where=None if operation.where is None else with_parts(operation.where, local),
        delete=with_parts(operation.delete, local),
        insert=with_parts(operation.insert, local),
        removed=tuple(map(fact, operation.removed)),
        added=tuple(map(fact, operation.added)),
    )
