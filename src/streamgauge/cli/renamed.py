"""Options that had another name: the old one goes on until the next version, is in no help, and is told of."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import typer

_SET: Final = {"--define": "--set"}

RENAMED: Final[Mapping[str, Mapping[str, str]]] = {
    **dict.fromkeys(("query", "watch", "translate", "import", "run", "capacity"), _SET),
    "stream": {**_SET, "--watermark": "--lateness"},
    "expect": {**_SET, "--as": "--semantics"},
    "check": {**_SET, "--as": "--rules"},
    "certify": {"--profile": "--semantics"},
    "subscribe": {"--count": "--limit"},
}
"""By the command's words after ``streamgauge``: the old name, and the one that took its place."""


def renewed(command: str, words: Iterable[str]) -> Iterator[str]:
    """A command's words with its options' names of today; an old one is noted on standard error."""
    known = RENAMED.get(command, {})
    rest = iter(words)
    for word in rest:
        if word == "--":
            yield word
            break
        option, equals, value = word.partition("=")
        if (now := known.get(option)) is None:
            yield word
            continue
        typer.echo(f"streamgauge: note: {option} is called {now}: the old name ends with the next version", err=True)
        yield f"{now}{equals}{value}"
    yield from rest
