"""The command ``watch``: keep a query over changing Linked Data current, as a live table or JSON lines."""

import asyncio
import sys
from collections.abc import AsyncGenerator, Callable
from datetime import UTC, datetime
from types import TracebackType
from typing import Annotated

import typer

from streamgauge.cli.answers import LiveTable, prefixes, row_key, timed
from streamgauge.cli.configuration import long_running
from streamgauge.cli.exits import Exit
from streamgauge.cli.options import Parameters, chosen, filled, milliseconds, naming
from streamgauge.cli.streams import write
from streamgauge.cli.terminal import close_output
from streamgauge.formats.lines import encode_answer
from streamgauge.model.answer import Answer
from streamgauge.model.mistake import MistakeError
from streamgauge.model.phrases import counted
from streamgauge.servers.fragments.annotations import named
from streamgauge.servers.fragments.client import LinkedDataError
from streamgauge.servers.fragments.labels import VOCABULARIES, Border, Label, Style
from streamgauge.servers.fragments.live_queries import Caching, LiveQuery, RefusedQueryError, live_query
from streamgauge.servers.fragments.live_queries.poll_loop import (
    AnswerContent,
    Event,
    Failed,
    Fresh,
    GaveUpError,
    Listening,
    Polling,
    PollTiming,
)
from streamgauge.servers.fragments.live_queries.watch import (
    PLANS,
    ChangeDelivery,
    UnpushedPlanError,
    WatchTerms,
    follow,
)


def register(app: typer.Typer) -> None:
    """Add this group's commands."""
    app.command("watch")(watch)


@long_running
def watch(
    query: Annotated[str, typer.Argument(metavar="QUERY", help="The query's file; - for standard input.")],
    urls: Annotated[list[str], typer.Argument(metavar="URL...", help="Sources: fragments, feeds, endpoints.")],
    plan: Annotated[str, typer.Option(help="incremental, or streamer: the loop as published.")] = "incremental",
    at_most_every: Annotated[
        str | None, typer.Option(metavar="DURATION", help="Minimum time between polls, even if facts end earlier: 60s.")
    ] = None,
    period: Annotated[str | None, typer.Option(metavar="DURATION", help="Maximum time between polls: 10s.")] = None,
    patience: Annotated[
        str | None,
        typer.Option(metavar="DURATION", help="How long polls may fail (default: 10m; 0 with --once)."),
    ] = None,
    cache: Annotated[Caching, typer.Option(case_sensitive=False, help="What is cached between polls.")] = Caching.ON,
    push: Annotated[bool, typer.Option("--push", help="Listen to servers that push changes.")] = False,
    whole: Annotated[bool, typer.Option("--whole", help="Print all rows at each poll instead of changes.")] = False,
    once: Annotated[bool, typer.Option("--once", help="End after the first answer.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON lines also on a terminal.")] = False,
    annotated: Annotated[
        str, typer.Option("--method", help="The method by which facts are annotated with times.")
    ] = "graphs",
    label: Annotated[Label, typer.Option(case_sensitive=False, help="The kind of time annotation.")] = Label.EXPIRATION,
    vocabulary: Annotated[str, typer.Option(help="paper or prototype.")] = "paper",
    border: Annotated[
        Border, typer.Option(case_sensitive=False, help="Whether a fact holds at its final time.")
    ] = Border.EXCLUSIVE,
    define: Parameters = None,
) -> None:
    """Keep the answer of a query over changing Linked Data current.

    Exit code 2 for an invalid query or source, 3 if a server did not answer within --patience.
    """
    text = filled(query, define or ())
    live = sys.stdout.isatty() and not as_json
    style = _style(annotated, label, vocabulary, border)
    timing = PollTiming(milliseconds(at_most_every, "--at-most-every"), milliseconds(period, "--period"))
    plan = chosen(plan, PLANS, "--plan")
    hears = ChangeDelivery.PUSH if push else ChangeDelivery.POLLS
    with naming(query):
        form = _live_query(query, text)
    shown = _Shown(text, form.columns, ordered=form.order is not None) if live else _Lines()
    sends = AnswerContent.WHOLE if whole or live else AnswerContent.CHANGES
    # A single answer is for scripts, which want an error at once.
    away = 0 if once and patience is None else milliseconds(patience or "10m", "--patience")
    terms = WatchTerms(plan, cache, style, timing, sends, tell=shown.tell, hears=hears, patience=away)
    try:
        answers = follow(text, urls, terms)
    except UnpushedPlanError as error:
        raise typer.BadParameter(str(error), param_hint="--push") from error
    try:
        with shown:
            code = _until_left(answers, shown.show, once)
    except LinkedDataError as error:
        typer.echo(f"streamgauge: {error}", err=True)
        code = Exit.ENGINE_FAILURE if isinstance(error, GaveUpError) else Exit.BAD_INPUT
    raise typer.Exit(code)


def _live_query(file: str, text: str) -> LiveQuery:
    try:
        return live_query(text)
    except RefusedQueryError as error:
        raise MistakeError(f"{file}: {error}") from error


def _style(annotated: str, label: Label, vocabulary: str, border: Border) -> Style:
    words = VOCABULARIES[chosen(vocabulary, VOCABULARIES, "--vocabulary")]
    return Style(named(annotated), label, words, border=border)


def _until_left(answers: AsyncGenerator[Answer, None], show: Callable[[Answer], None], once: bool) -> int:
    """Show the answers until Ctrl-C, a closed pipe, or the first one."""
    shown = 0

    async def run() -> None:
        nonlocal shown
        try:
            async for answer in answers:
                show(answer)
                shown += 1
                if once:
                    return
        finally:
            # In the loop that runs the generator: its connections belong to it.
            await answers.aclose()

    try:
        asyncio.run(run())
    except KeyboardInterrupt:
        typer.echo(counted(shown, "answer"), err=True)
        return 130
    except BrokenPipeError:
        close_output()
    return Exit.RIGHT


class _Lines:
    """Answers as JSON lines on standard output, failures as sentences on standard error."""

    def __enter__(self) -> "_Lines":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Do nothing, as nothing is open."""

    def show(self, answer: Answer) -> None:
        """Print the answer as a line of JSON."""
        write(encode_answer(answer))

    def tell(self, event: Event) -> None:
        """Print the source that failed, and whether it is listened to or polled."""
        match event:
            case Failed():
                typer.echo(f"streamgauge: {_failed(event)}", err=True)
            case Listening() | Polling():
                typer.echo(f"streamgauge: {_heard(event)}", err=True)


class _Shown(LiveTable):
    """The current answer on a terminal; new rows are marked until the next change."""

    def __init__(self, text: str, columns: tuple[str, ...], *, ordered: bool) -> None:
        super().__init__(columns, prefixes(text), "waiting for the first answer")
        self._ordered = ordered
        self._way = ""

    def show(self, answer: Answer) -> None:
        """Replace the rows of the table by those of the answer."""
        # Not at the first answer, of which all rows would be marked.
        new = frozenset(answer.added).difference(self._rows) if self._rows else frozenset()
        self.show_rows(answer.added if self._ordered else sorted(answer.added, key=row_key), new)

    def tell(self, event: Event) -> None:
        """Show the state below the table."""
        match event:
            case Failed():
                self.say(_failed(event), "bold red")
            case Listening() | Polling():
                self._way = f"; {_heard(event)}"
            case Fresh(instant=instant, next=following):
                again = datetime.fromtimestamp(following / 1000, UTC).strftime("%H:%M:%SZ")
                self.say(f"at {timed(instant)}, next at {again}, Ctrl-C to end{self._way}")


def _heard(event: Listening | Polling) -> str:
    if isinstance(event, Listening):
        return f"{event.address} pushes changes: listening"
    again = "" if event.again is None else f", listening again in {event.again:.1f} s"
    return f"{event.why}: polling{again}"


def _failed(event: Failed) -> str:
    return f"{event.why}; trying again in {event.again:.1f} s"
