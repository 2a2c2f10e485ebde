"""The command ``streamgauge``: commands imported when they run; errors as sentences and exit codes."""

import os
import sys

import typer

from streamgauge import __version__
from streamgauge.cli.commands import RootGroup
from streamgauge.cli.completion import ASKED, answer_shells
from streamgauge.model.mistake import MistakeError, obstacle

BAD_INPUT = (MistakeError,)
"""A mistake that a user can put right: printed as its sentence, without a stack trace, with exit code 2."""

_BAD_INPUT_CODE = 2
"""``Exit.BAD_INPUT``, whose module is not needed for help."""

_NO_ROOM = "java.lang.OutOfMemoryError"

app = typer.Typer(
    cls=RootGroup,
    name="streamgauge",
    help="Answer, judge and measure continuous queries over RDF.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


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
    if ASKED in os.environ:
        answer_shells()
    try:
        app(prog_name="streamgauge")
    except BAD_INPUT as error:
        sys.exit(_say(str(error)))
    except OSError as error:
        sys.exit(_say(f"{error.filename}: {obstacle(error)}" if error.filename else obstacle(error)))
    except RecursionError:
        sys.exit(_say("the query or the data are nested too deeply to be evaluated: write them flatter"))
    except Exception as error:
        if _NO_ROOM not in str(error):
            raise
        sys.exit(_say("Spark has not enough memory for this: give it more, as by SPARK_DRIVER_MEMORY=8g, or ask less"))


def _say(sentence: str) -> int:
    typer.echo(f"streamgauge: {sentence}", err=True)
    return _BAD_INPUT_CODE


if __name__ == "__main__":
    main()
