"""Refusals: errors that name the unsupported part of a query and the remedy."""

from collections import Counter
from collections.abc import Iterable
from typing import Final

from streamgauge.model import algebra as al
from streamgauge.model.mistake import MistakeError
from streamgauge.model.query import ContinuousQuery
from streamgauge.model.semantics import R2S, Borders, Counting, Due, Report, Semantics
from streamgauge.query.instants import uses_now
from streamgauge.query.stamps import stamped, uses_timestamp
from streamgauge.query.traversal import assigned_in_exists, every_part, every_pattern
from streamgauge.semantics.updates import no_update


class RefusedError(MistakeError, ValueError):
    """A query that the definition or an evaluator does not cover; the message names the part and the remedy."""


class OutOfOrderError(MistakeError, ValueError):
    """Application time went back, and no lateness bound was declared."""


class StreamNameError(MistakeError, ValueError):
    """Elements arrived, but on none of the query's streams; the message has both names."""

    def __init__(self, named: Iterable[str], came: str) -> None:
        super().__init__(
            f"the query's window is over {' and '.join(sorted(named))}, but the elements are of {came}: "
            "name the same stream in both (a source's is named by IRI=SOURCE)"
        )


def meaningless(query: ContinuousQuery, semantics: Semantics) -> str | None:
    """Why the query is undefined under the semantics, for every evaluator; ``None`` if it is defined."""
    return at_odds(query, semantics) or _misplaced_timestamp(query.form)


def at_odds(query: ContinuousQuery, semantics: Semantics) -> str | None:
    """Why the query cannot be answered under this semantics, though it may under another; ``None`` if it can."""
    if not query.windows:
        return "the query has no window: name a stream and a window over it"
    named = Counter(window.name for window in query.windows if window.name is not None)
    if twice := [name for name, times in named.items() if times > 1]:
        return f"two windows are named {twice[0]}: name each differently"
    # A triple's occurrences exist in the default graph only: named graphs are sets, and a stamp is one per triple.
    if semantics.content is Counting.BAG and (named or uses_timestamp(query.form)):
        return "GRAPH or timestamp() over a content that is a bag is not defined: use content = set"
    if semantics.content is Counting.UPDATES and (reason := no_update(query, semantics)):
        return reason
    if semantics.due is Due.LAST and semantics.lateness is not None:
        return (
            "only the last of several due windows together with a lateness bound (due = last, lateness): which are due "
            "at once would depend on when the watermark moves; use due = all or sort the stream"
        )
    if Report.EXPIRATION in semantics.report and (reason := _no_expiration(query, semantics)):
        return reason
    if (query.r2s or semantics.r2s) is not R2S.RSTREAM and _makes_blanks(query.form):
        return (
            f"{query.r2s or semantics.r2s} of CONSTRUCT with blank nodes in the template: every instant makes new "
            "ones, so no two can be compared; use Rstream or IRIs"
        )
    return None


def indefinite(form: al.QueryForm) -> str | None:
    """Why the query has no definite answers under any semantics, found by walking through it; ``None`` if it has."""
    return _misplaced_timestamp(form) or undefined(form) or volatile(form)


def _misplaced_timestamp(form: al.QueryForm) -> str | None:
    try:
        stamped(form)
    # The rewriting is the only place that knows where timestamp() may stand.
    except ValueError as error:
        return str(error)
    return None


def _no_expiration(query: ContinuousQuery, semantics: Semantics) -> str | None:
    """Why the query cannot be reported at expirations; ``None`` if it can."""
    if any(window.window.kind != "landmark" for window in query.windows):
        return "reports at expirations over a window: facts hold until they end, so use a landmark window"
    if semantics.borders is Borders.CLOSED:
        return "reports at expirations with borders [o, c]: facts hold in [initial, final) or (initial, final]"
    if uses_now(query.form):
        return "NOW() with reports at expirations: the answer would change with every ms, so compare times of facts"
    if semantics.lateness is not None:
        return "reports at expirations with a lateness bound: what a server knew later is staleness, so sort the stream"
    return None


def _makes_blanks(form: al.QueryForm) -> bool:
    return isinstance(form, al.Construct) and any(
        var.name.startswith("_:") for triple in form.template for var in al.triple_variables(triple)
    )


VOLATILE: Final = frozenset({"RAND", "UUID", "STRUUID"})
"""Functions whose value differs at each call."""


def volatile(form: al.QueryForm) -> str | None:
    """The message for a function of the query that returns another value each time; ``None`` without one."""
    for pattern in every_pattern(form.pattern):
        for part in every_part(pattern):
            if isinstance(part, al.Call) and part.operator.upper() in VOLATILE:
                name = part.operator
                return f"{name}() gives a different value at each call, so answers cannot be compared: bind a constant"
    return None


def undefined(form: al.QueryForm) -> str | None:
    """The message for a part of the query that SPARQL leaves undefined; ``None`` without one."""
    for name in assigned_in_exists(form.pattern):
        return (
            f"EXISTS computes ?{name}, which the pattern around it binds: SPARQL 1.1 does not define it (18.6); name "
            "the inner variable differently"
        )
    return None
