"""Every query asked again by columns after each publication, in DuckDB: what is fast without being incremental."""

from collections.abc import Callable, Mapping
from typing import Final

from streamgauge.reasoning.rules import Rules
from streamgauge.servers.broker.contract import Strategy
from streamgauge.suites.sepbm.adapters.broker_inprocess import InProcess
from streamgauge.suites.sepbm.columns import Columns
from streamgauge.suites.sepbm.contract import UnusableSystemError

ABOUT: Final = "all queries asked again by columns, in DuckDB (needs the extra `columns`)"
OPTIONS: Final[Mapping[str, str]] = {}


def start(_options: Mapping[str, str], clock: Callable[[], int]) -> InProcess:
    """A broker that tells what DuckDB finds; UnusableSystemError without DuckDB."""
    try:
        import duckdb
    except ImportError as error:
        raise UnusableSystemError("system columns needs DuckDB: pip install 'streamgauge[columns]'") from error

    def make(rules: Rules) -> Strategy:
        return Columns(rules, duckdb.connect(":memory:"))

    return InProcess(make, None, None, clock)
