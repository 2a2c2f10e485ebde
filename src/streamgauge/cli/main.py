"""The command ``streamgauge``: every module here that has ``register``; errors as sentences and exit codes."""

import sys
from importlib import import_module
from pkgutil import iter_modules

import typer

from streamgauge import __version__, cli
from streamgauge.bench.certifying.cases import CaseError
from streamgauge.bench.certifying.deviations import DeviationError
from streamgauge.bench.expected.background import BackgroundError
from streamgauge.bench.experiments.experiment import ExperimentError
from streamgauge.bench.importing import ForeignError
from streamgauge.bench.rules import UnknownRulesError
from streamgauge.bench.sepbm.configuration import ConfigurationError
from streamgauge.bench.sepbm.contract import UnusableSystemError
from streamgauge.bench.sepbm.recorded import RecordingError
from streamgauge.cli.exits import Exit
from streamgauge.cli.spark import SparkUnavailableError
from streamgauge.compute.reasoning import OntologyError
from streamgauge.engines import EngineError
from streamgauge.query import QueryError, TemplateError
from streamgauge.semantics.profiles import UnknownProfileError
from streamgauge.semantics.refusal import OutOfOrderError, RefusedError, StreamNameError
from streamgauge.services.broker.bridge import BridgeError
from streamgauge.services.broker.calls import BrokerError
from streamgauge.services.broker.hooks import HookError
from streamgauge.services.broker.sqlite import JournalError
from streamgauge.services.broker.strategies import UnknownStrategyError
from streamgauge.services.fragments.annotations import UnknownMethodError
from streamgauge.services.fragments.storing.disk import FolderError
from streamgauge.services.fragments.storing.indexed import KeepError
from streamgauge.services.fragments.storing.shelf import DamagedStoreError, FullError
from streamgauge.services.fragments.streaming.asked import RefusedQueryError
from streamgauge.services.web.origins import OriginError
from streamgauge.services.web.tokens import TokenError
from streamgauge.sources import SourceError
from streamgauge.watching import WatchError
from streamgauge.wire.bounds import BoundError
from streamgauge.wire.formats import FormatError
from streamgauge.wire.run import RunError
from streamgauge.wire.stream import StreamError
from streamgauge.workloads import UnknownNameError
from streamgauge.workloads.parameters import ParameterError

BAD_INPUT = (
    ExperimentError,
    QueryError,
    TemplateError,
    RunError,
    StreamError,
    ParameterError,
    UnknownNameError,
    EngineError,
    FormatError,
    UnknownProfileError,
    RefusedError,
    OutOfOrderError,
    SparkUnavailableError,
    ForeignError,
    BackgroundError,
    UnknownRulesError,
    CaseError,
    DeviationError,
    WatchError,
    SourceError,
    StreamNameError,
    TokenError,
    OriginError,
    RefusedQueryError,
    UnknownMethodError,
    FolderError,
    DamagedStoreError,
    FullError,
    KeepError,
    BrokerError,
    BridgeError,
    HookError,
    JournalError,
    OntologyError,
    UnknownStrategyError,
    ConfigurationError,
    UnusableSystemError,
    RecordingError,
    BoundError,
)
"""What a user can put right: printed as its sentence, without a stack trace."""

_NO_ROOM = "java.lang.OutOfMemoryError"

app = typer.Typer(
    name="streamgauge",
    help="Answer, judge and measure continuous queries over RDF.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
for module in iter_modules(cli.__path__):
    if module.name != "main":
        group = import_module(f"{cli.__name__}.{module.name}")
        if hasattr(group, "register"):
            group.register(app)


def _version(value: bool) -> None:
    if value:
        typer.echo(f"streamgauge {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Print the version."),
) -> None:
    """Answer, judge and measure continuous queries over RDF."""


def main() -> None:
    """Run the command line; every expected error is one sentence on standard error and exit code 2."""
    try:
        app()
    except BAD_INPUT as error:
        sys.exit(_say(str(error)))
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        sys.exit(_say(f"{where}{error.strerror or error}"))
    except RecursionError:
        sys.exit(_say("the query or the data are nested too deeply to be evaluated: write them flatter"))
    except Exception as error:
        if _NO_ROOM not in str(error):
            raise
        sys.exit(_say("Spark has not enough memory for this: give it more, as by SPARK_DRIVER_MEMORY=8g, or ask less"))


def _say(sentence: str) -> int:
    typer.echo(f"streamgauge: {sentence}", err=True)
    return Exit.BAD_INPUT


if __name__ == "__main__":
    main()
