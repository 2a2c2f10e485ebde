"""Configuration of servers and long-running commands, and the command ``config``, which prints it.

An option's value is that of the command line, else of the environment (``STREAMGAUGE_ENGINE_SERVE_PORT``), else of the
file ``streamgauge.toml``, else its default. In the file each command has a table, ``[engine.serve]``, with its options
by name; arguments are named as in the usage line (``engine = ["live"]``).
"""

import inspect
import json
import os
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, Final, get_args, get_origin

import typer

from streamgauge.cli.catalogue import COMMANDS, CONFIGURED, words_of
from streamgauge.cli.options import one_of, with_parameters
from streamgauge.formats.files import read_text
from streamgauge.formats.places import local
from streamgauge.formats.toml import line_of, not_toml
from streamgauge.model.logs import FORMS, LEVELS, logging_to_standard_error, without_secrets
from streamgauge.model.mistake import MistakeError
from streamgauge.model.phrases import counted, offered

FILE: Final = "streamgauge.toml"
PREFIX: Final = "STREAMGAUGE"
VARIABLE: Final = f"{PREFIX}_CONFIG"
"""The environment variable with the path of the file."""

SHARED: Final = ("log-level", "log-format")
"""Options of all these commands, which may also be at the top of the file."""

COMMAND_LINE: Final = "command line"

_PLACE: Final = "streamgauge.configuration"
"""The key of a command's file in its context's ``meta``."""


class OptionsError(MistakeError, ValueError):
    """An invalid configuration; the sentence names the file and line, or the variable."""


@dataclass(frozen=True, slots=True)
class ConfigurationFile:
    """A configuration file, with a table for each command."""

    path: Path
    text: str
    tables: Mapping[str, Any]

    def place(self, words: Sequence[str], key: str) -> str:
        """The file and line of a command's option."""
        keys = (key,) if key in SHARED and key not in self.table(words) else (*words, key)
        return f"{self.path}:{line_of(self.text, keys) or 1}"

    def table(self, words: Sequence[str]) -> Mapping[str, Any]:
        """The options of a command; OptionsError if its table is something else."""
        table: Mapping[str, Any] = self.tables
        for word in words:
            inner = table.get(word, {})
            if not isinstance(inner, Mapping):
                where = line_of(self.text, words) or 1
                raise OptionsError(f"{self.path}:{where}: {word} is a command: write [{'.'.join(words)}]")
            table = inner
        return table


def read_configuration(path: Path) -> ConfigurationFile:
    """Read a file; OptionsError if it is not TOML or has a table of an unknown command."""
    text = read_text(path)
    try:
        tables = tomllib.loads(text)
    except ValueError as error:
        raise OptionsError(not_toml(path, text, error)) from error
    first = dict.fromkeys(words.partition(" ")[0] for words in CONFIGURED)
    for key in tables:
        if key not in first and key not in SHARED:
            known = f"it is not a {'server or long command' if key in COMMANDS else 'command'}"
            near = offered(key, [*first, *SHARED])
            raise OptionsError(f"{path}:{line_of(text, (key,)) or 1}: {key}: {known}: {near}")
    return ConfigurationFile(path, text, tables)


def long_running(command: Callable[..., None]) -> Callable[..., None]:
    """Decorate a server or long-running command: its options may be configured, and it has logging options."""
    signature = inspect.signature(command, eval_str=True)

    @wraps(command)
    def configured(log_level: str, log_format: str, config: Path | None = None, **options: Any) -> None:
        del config  # read before the other options were
        with logging_to_standard_error(log_level, log_format):
            command(**options)

    shared = inspect.signature(_common, eval_str=True)
    return with_parameters(configured, [*signature.parameters.values(), *shared.parameters.values()])


def _configure(ctx: typer.Context, param: typer.CallbackParam, value: Path | None) -> Path | None:
    """Set the values of file and environment as defaults before the other options are parsed."""
    del param
    words = words_of(ctx).split()
    keys = {key_of(parameter): parameter for parameter in ctx.command.params}
    for key, parameter in keys.items():
        if key != "config":
            parameter.envvar = _variables(words, key)
    # A misspelt variable would be ignored silently.
    _refuse_variables(words, keys)
    path = None if value is None else local(value, f"`streamgauge {words_of(ctx)}`")
    path = path or (Path(FILE) if Path(FILE).is_file() else None)
    if path is not None:
        file = read_configuration(path)
        ctx.meta[_PLACE] = file
        ctx.default_map = dict(_values(file, words, keys))
    return path


def _common(
    *,
    config: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            envvar=VARIABLE,
            is_eager=True,
            callback=_configure,
            help=f"The configuration file (default: {FILE} in this folder).",
        ),
    ] = None,
    log_level: Annotated[str, one_of(lambda: LEVELS, "--log-level", help="debug, info, warning or error.")] = "info",
    log_format: Annotated[
        str, one_of(lambda: FORMS, "--log-format", help="text, or json (an object per line).")
    ] = "text",
) -> None:
    """The options that all configurable commands have."""


def key_of(parameter: Any) -> str:
    """The name of an option without dashes, or of an argument as in the usage line."""
    if parameter.param_type_name == "argument":
        return str(parameter.metavar).removesuffix("...").lower()
    return str(max(parameter.opts, key=len)).lstrip("-")


def _variables(words: Sequence[str], key: str) -> list[str]:
    # ``port`` of ``engine serve`` is STREAMGAUGE_ENGINE_SERVE_PORT.
    own = "_".join((PREFIX, *words, key)).replace("-", "_").upper()
    return [own, f"{PREFIX}_{key.replace('-', '_').upper()}"] if key in SHARED else [own]


def _refuse_variables(words: Sequence[str], keys: Mapping[str, Any]) -> None:
    """OptionsError for a variable of the command that matches none of its options."""
    begin = f"{'_'.join((PREFIX, *words)).upper()}_"
    known = [_variables(words, key)[0] for key in keys if key != "config"]
    for variable in sorted(os.environ):
        if variable.startswith(begin) and variable not in known:
            raise OptionsError(f"{variable}: there is no such option: {offered(variable, known)}")


def _values(file: ConfigurationFile, words: Sequence[str], keys: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """(parameter, value) of a command's table and of the shared options at the top."""
    table = file.table(words)
    for key in table:
        if key not in keys or key == "config":
            options = [name for name in keys if name != "config"]
            raise OptionsError(f"{file.place(words, key)}: {key}: no such option: {offered(key, options)}")
    for key, parameter in keys.items():
        if key in table or (key in SHARED and key in file.tables):
            value = table[key] if key in table else file.tables[key]
            annotation = parameter.type_descriptor.annotation
            if not _fits(annotation, value):
                raise OptionsError(f"{file.place(words, key)}: {key} is {value!r}: write {_expected(annotation)}")
            yield parameter.name, value


def _fits(annotation: Any, value: object) -> bool:
    if get_origin(annotation) is list:
        return isinstance(value, list) and all(_fits(get_args(annotation)[0], part) for part in value)
    # By ``type`` and not ``isinstance``: True is an int to Python, and ``port = true`` would be port 1.
    if annotation in (bool, int):
        return type(value) is annotation
    return type(value) in (int, float) if annotation is float else isinstance(value, str)


def _expected(annotation: Any) -> str:
    if get_origin(annotation) is list:
        return f"a list, each {_expected(get_args(annotation)[0])}"
    return {bool: "true or false", int: "a whole number", float: "a number"}.get(annotation, "text in quotes")


def placed(ctx: typer.Context, error: typer.BadParameter) -> Exception:
    """An invalid value's error with its file and line or variable; unchanged for the command line."""
    parameter = error.param or next((one for one in ctx.command.params if error.param_hint in one.opts), None)
    origin = None if parameter is None else origin_of(ctx, parameter)
    if parameter is None or origin is None or origin == COMMAND_LINE:
        return error
    return OptionsError(f"{origin}: {key_of(parameter)}: {error.message}")


def origin_of(ctx: typer.Context, parameter: Any) -> str | None:
    """The origin of a value: ``COMMAND_LINE``, a variable, a file with its line; ``None`` for a default."""
    source = ctx.get_parameter_source(parameter.name)
    match source.name if source is not None else "DEFAULT":
        case "COMMANDLINE":
            return COMMAND_LINE
        case "ENVIRONMENT":
            names = [parameter.envvar] if isinstance(parameter.envvar, str) else parameter.envvar
            return next((name for name in names if os.environ.get(name)), None)
        case "DEFAULT_MAP":
            file: ConfigurationFile = ctx.meta[_PLACE]
            return file.place(words_of(ctx).split(), key_of(parameter))
    return None


def register(app: typer.Typer) -> None:
    """Add the command ``config``."""
    settings = {"ignore_unknown_options": True, "allow_interspersed_args": False}
    app.command("config", context_settings=settings)(config)


def config(
    ctx: typer.Context,
    command: Annotated[
        list[str] | None, typer.Argument(metavar="COMMAND...", help="A command with its options: engine serve.")
    ] = None,
    file: Annotated[Path, typer.Option("--config", metavar="FILE", envvar=VARIABLE, help="The file to check.")] = Path(
        FILE
    ),
) -> None:
    """Print the effective options of a server or long-running command, each with its origin.

    Without a command, check the file for all commands.
    """
    if command:
        chosen = [] if ctx.get_parameter_source("file") is None or file == Path(FILE) else ["--config", str(file)]
        typer.echo("\n".join(_lines(_resolved(ctx.find_root(), [*command, *chosen]))))
        return
    configuration = read_configuration(file)
    for words in CONFIGURED:
        _resolved(ctx.find_root(), [*words.split(), "--config", str(file)])
        if table := configuration.table(words.split()):
            typer.echo(f"{file}: {words}: {counted(len(table), 'option')}")


def _resolved(above: Any, words: Sequence[str]) -> typer.Context:
    """The context of a command, even without its arguments; MistakeError if it cannot be configured."""
    ctx: Any = above
    rest = list(words)
    # Down from the program to the command, group by group, as the parser of options goes.
    while hasattr(ctx.command, "resolve_command") and rest:
        name, inner, rest = ctx.command.resolve_command(ctx, rest)
        if not hasattr(inner, "commands"):
            for parameter in inner.params:
                # Shown without its arguments, a command must not ask for them.
                parameter.required = False
        ctx = inner.make_context(name, list(rest), parent=ctx)
    if words_of(ctx) not in CONFIGURED:
        raise MistakeError(f"{words_of(ctx)} has no configuration: {offered(words_of(ctx), list(CONFIGURED))}")
    resolved: typer.Context = ctx
    return resolved


def _lines(ctx: Any) -> Iterator[str]:
    """The command's options as TOML with the same effect."""
    yield f"[{'.'.join(words_of(ctx).split())}]"
    for parameter in ctx.command.params:
        key, value = key_of(parameter), ctx.params.get(parameter.name)
        if key in ("config", "help"):
            continue
        if value is None:
            # TOML has no null.
            yield f"# {key}: not set"
        else:
            yield f"{key} = {_toml(value)}  # {origin_of(ctx, parameter) or 'default'}"


def _toml(value: Any) -> str:
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return repr(value)
    return json.dumps(without_secrets(str(value.value if isinstance(value, Enum) else value)), ensure_ascii=False)
