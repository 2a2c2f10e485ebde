"""The check of options: a format declares those that it honours in each way of reading; others are refused."""

from collections.abc import Iterable
from typing import Final

from streamgauge.formats.documents import FormatError
from streamgauge.formats.streams.format import Format, Reading, Way

TIMES: Final = frozenset({"time_property", "time_in", "time_zone", "fold"})
"""The options of formats whose times are a property or column."""

STREAM: Final = frozenset({"stream", "lateness"})
"""The options of formats whose elements do not name their stream."""

_EXAMPLE: Final = "as by --time-property sosa:resultTime"

_NEED_PROPERTY: Final = frozenset({"time_in", "time_zone", "fold", "parts"})
"""Options that need a time property or column."""

_WAYS: Final = {
    "read": "",
    "timed": " read by a time property",
    "follow": " from standard input or a growing file",
    "decoder": " in messages",
}


def honoured(*names: str | frozenset[str]) -> frozenset[str]:
    """The union of option names and sets of them."""
    return frozenset(name for part in names for name in ((part,) if isinstance(part, str) else part))


def check_options(form: Format, way: Way, reading: Reading, place: str, formats: Iterable[Format]) -> None:
    """FormatError for an option that the format does not honour in this way, with those that do."""
    # Sorted, so that the message does not depend on the order of a set.
    refused = sorted(reading.chosen - form.honours.get(way, frozenset()))
    if refused:
        raise FormatError(f"{place}: {_refusal(refused[0], form, way, formats)}")
    if reading.time_property is None and not form.guesses_time:
        for option in sorted(reading.chosen & _NEED_PROPERTY):
            raise FormatError(f"{place}: {shown(option)} needs a time property: name it, {_EXAMPLE}")


def _refusal(option: str, form: Format, way: Way, formats: Iterable[Format]) -> str:
    elsewhere = [other for other, options in form.honours.items() if option in options and getattr(form, other)]
    if elsewhere:
        return f"{shown(option)} does not apply to {form.name}{_WAYS[way]}, only to {form.name}{_WAYS[elsewhere[0]]}"
    return f"{shown(option)} is not an option of {form.name}{_others(option, formats)}"


def _others(option: str, formats: Iterable[Format]) -> str:
    able = [form.name for form in formats if option in form.options]
    return f": {', '.join(able)} {'has' if len(able) == 1 else 'have'} it" if able else ""


def shown(option: str) -> str:
    """An option as written after a source, with its form on the command line if it has one."""
    return option if option not in _COMMAND_LINE else f"{option} (--{option.replace('_', '-')})"


_COMMAND_LINE: Final = frozenset(
    {"time_property", "time_in", "time_zone", "fold", "parts", "csv_mapping", "json_mapping", "base", "context"}
)
