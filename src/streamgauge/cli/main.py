"""The command ``streamgauge``: commands imported when they run; errors as sentences and exit codes."""

import gc
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from importlib import import_module
from itertools import groupby
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from streamgauge import __version__
from streamgauge.cli.catalogue import COMMANDS, CONFIGURED, EXAMPLES, CatalogueEntry, words_of
from streamgauge.cli.completion import COMPLETE_VARIABLE, answer_shells
from streamgauge.cli.streams import visible_streams
from streamgauge.model.mistake import MistakeError, obstacle
from streamgauge.model.phrases import expectation


class Command(TyperCommand):
    """A command whose help ends with an example."""

    def __init__(self, *arguments: Any, **attributes: Any) -> None:
        super().__init__(*arguments, **attributes)
        for param in self.params:
            if param.param_type_name == "argument" and param.metavar is None:
                param.metavar = param.name.upper()

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the words into parameters; UsageError for unknown words."""
        try:
            rest = super().parse_args(ctx, args)
        except typer.BadParameter as error:
            problems = getattr(error.__cause__, "errors", None)
            if callable(problems):
                error.message = expectation(problems()[0])
            raise _placed(ctx, error) from error
        ctx.params = {name: _on_this_machine(value, words_of(ctx)) for name, value in ctx.params.items()}
        return rest

    def invoke(self, ctx: Any) -> Any:
        """Run the command; an error about a configured value names its place."""
        try:
            return super().invoke(ctx)
        except typer.BadParameter as error:
            raise _placed(ctx, error) from error

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """The usage line: arguments in capitals, in brackets if they are optional."""
        del ctx
        return ["[OPTIONS]", *(_usage(param) for param in self.params if param.param_type_name == "argument")]

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Print the command's examples below its options."""
        _format_examples(ctx, formatter)


def _on_this_machine(value: Any, command: str) -> Any:
    """A value with ``file:`` URLs as paths; RemotePlaceError for a URL where a path is needed."""
    from streamgauge.formats.places import local  # late: help needs no place

    if isinstance(value, list | tuple):
        return type(value)(_on_this_machine(part, command) for part in value)
    return local(value, f"`streamgauge {command}`") if isinstance(value, Path) else value


def _format_examples(ctx: Any, formatter: Any) -> None:
    examples = EXAMPLES.get(words_of(ctx), ())
    if examples:
        with formatter.section("Example" if len(examples) == 1 else "Examples"):
            for example in examples:
                formatter.write(f"{'':{formatter.current_indent}}streamgauge {example}\n")


def _placed(ctx: Any, error: typer.BadParameter) -> Exception:
    """The error, with the place of the value if it is from a configuration."""
    if words_of(ctx) not in CONFIGURED:
        return error
    from streamgauge.cli.configuration import placed  # late: help needs no configuration

    return placed(ctx, error)


def _usage(argument: Any) -> str:
    name = argument.metavar.removesuffix("...") + ("..." if argument.nargs != 1 else "")
    return name if argument.required else f"[{name}]"


class CommandGroup(TyperGroup):
    """Commands found in any case; an unknown name is answered with similar ones."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the command of the first word; UsageError."""
        name = args[0].lower()
        if name in self.commands:
            return super().resolve_command(ctx, [name, *args[1:]])
        # The completion of a shell parses half a word.
        if not ctx.resilient_parsing and not args[0].startswith("-"):
            near = get_close_matches(name, self.commands)
            message = f": did you mean {' or '.join(near)}?" if near else f": there are {', '.join(self.commands)}"
            ctx.fail(f"no command {args[0]!r}{message}")
        return super().resolve_command(ctx, args)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Print the examples of a group that is a command itself."""
        _format_examples(ctx, formatter)


class RootGroup(CommandGroup):
    """All commands, each imported when it is resolved; help and completion show the catalogue's lines."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands.update({name: _listed(name, entry) for name, entry in COMMANDS.items()})

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find and import the command of the first word; UsageError."""
        name, command, rest = super().resolve_command(ctx, args)
        return name, command if name is None else load(name), rest

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Print the list of commands, part by part."""
        del ctx
        width = max(map(len, COMMANDS))
        for part, entries in groupby(COMMANDS.items(), lambda item: item[1].part):
            with formatter.section(part.value):
                formatter.write_dl([(name.ljust(width), entry.about) for name, entry in entries])


def load(name: str) -> Any:
    """Import a command or group of the catalogue."""
    app = _Registry(rich_markup_mode=None, add_completion=False)
    app.callback()(_nothing)
    with _without_collection():
        import_module(f"streamgauge.cli.{COMMANDS[name].module}").register(app)
    group = typer.main.get_command(app)
    assert isinstance(group, TyperGroup)
    return group.commands[name]


@contextmanager
def _without_collection() -> Iterator[None]:
    """Disable garbage collection: imports leave no garbage, and searching it takes a tenth of a start."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


class _Registry(typer.Typer):
    """The application with which a module registers its commands, made of the classes above."""

    def command(self, name: str | None = None, **settings: Any) -> Any:
        return super().command(name, **{"cls": Command, **settings})

    def add_typer(self, typer_instance: typer.Typer, **settings: Any) -> None:
        for command in typer_instance.registered_commands:
            command.cls = Command if command.cls in (None, TyperCommand) else command.cls
        super().add_typer(typer_instance, **{"cls": CommandGroup, **settings})


def _nothing() -> None:
    """A callback, which makes Typer build a group."""


def _listed(name: str, entry: CatalogueEntry) -> Command:
    """A command for lists, without its module and so without options."""
    return Command(name, help=entry.about, short_help=entry.about, rich_markup_mode=None)


BAD_INPUT = (MistakeError,)
"""Errors that users can correct: printed as a sentence without a traceback, with exit code 2."""

_BAD_INPUT_CODE = 2
"""``Exit.BAD_INPUT``, without importing its module, which help does not need."""

_INTERRUPTED_CODE, _TERMINATED_CODE = 130, 143
"""128 and the number of the signal: SIGINT, SIGTERM."""

_SHORTAGES = {
    "java.lang.OutOfMemoryError": "Spark has too little memory for this: give it more (SPARK_DRIVER_MEMORY=8g)",
    "spark.driver.maxResultSize": (
        "a result of Spark exceeds spark.driver.maxResultSize: raise it (PYSPARK_SUBMIT_ARGS='--conf "
        "spark.driver.maxResultSize=4g pyspark-shell'), judge by --evaluator definition"
    ),
}
"""Texts in Spark's errors about memory, and how to give it more."""

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
    if COMPLETE_VARIABLE in os.environ:
        answer_shells()
    with visible_streams():
        _run()


def _run() -> None:
    try:
        with Termination():
            app(prog_name="streamgauge")
    except BAD_INPUT as error:
        sys.exit(_say(str(error)))
    except OSError as error:
        sys.exit(_say(f"{error.filename}: {obstacle(error)}" if error.filename else obstacle(error)))
    except ImportError as error:
        from streamgauge.model.extras import missing_for

        if not (sentence := missing_for(error)):
            raise
        sys.exit(_say(sentence))
    # Bounds on the nesting of texts refuse it earlier in most places; this one is for those that only meet deep data.
    except RecursionError:
        sys.exit(_say("the query or the data are nested too deeply to be evaluated: write them flatter"))
    except Exception as error:
        if not (sentence := _job_failure(error)):
            raise
        sys.exit(_say(sentence))


def _job_failure(error: Exception) -> str:
    """Why a job of Spark failed, in a sentence; empty for other errors, or if Spark's log is shown."""
    # Py4J passes errors of the JVM on as text.
    text = str(error)
    if remedy := next((remedy for name, remedy in _SHORTAGES.items() if name in text), None):
        return f"{remedy}, or reduce the work"
    if type(error).__module__.partition(".")[0] not in ("pyspark", "py4j") or "STREAMGAUGE_SPARK_LOG" in os.environ:
        return ""
    from streamgauge.spark.failures import words

    return f"a job of Spark failed: {words(error)}: STREAMGAUGE_SPARK_LOG=info shows its log"


class Termination:
    """Handle SIGTERM like Ctrl-C, so that a command prints and stores its results, but exit with 143."""

    def __init__(self) -> None:
        self._came = False

    def __enter__(self) -> None:
        """Install the handler; programs that are started keep the default one."""
        signal.signal(signal.SIGTERM, self._interrupt)

    def _interrupt(self, _number: int, frame: FrameType | None) -> None:
        """Call the current handler of SIGINT: Spark and event loops have their own, background jobs none."""
        self._came = True
        interrupt = signal.getsignal(signal.SIGINT)
        (interrupt if callable(interrupt) else signal.default_int_handler)(signal.SIGINT, frame)

    def __exit__(
        self, _kind: type[BaseException] | None, error: BaseException | None, _at: TracebackType | None
    ) -> None:
        """Replace the exit code of Ctrl-C."""
        # Where the signal came within exec of a text, as a dataclass that is being imported does it, CPython remembers
        # an unhandled KeyboardInterrupt, and under -m ends by SIGINT whatever the exit code; the next text clears that.
        exec("")
        interrupted = isinstance(error, KeyboardInterrupt) or (
            isinstance(error, SystemExit) and error.code == _INTERRUPTED_CODE
        )
        if self._came and interrupted:
            raise SystemExit(_TERMINATED_CODE) from None


def _say(sentence: str) -> int:
    typer.echo(f"streamgauge: {sentence}", err=True)
    return _BAD_INPUT_CODE


if __name__ == "__main__":
    main()
