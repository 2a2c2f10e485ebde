"""The command ``ui``: serve the workbench."""

import gc
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from streamgauge.cli.configuration import long_running
from streamgauge.cli.servers import Host, say
from streamgauge.cli.tokens import TokenFile
from streamgauge.model.mistake import MistakeError
from streamgauge.servers.http.server import Serving
from streamgauge.workbench.application import application
from streamgauge.workbench.rooms import Bench


def register(app: typer.Typer) -> None:
    """Add the command ``ui``."""
    app.command()(ui)


@long_running
def ui(
    folder: Annotated[Path, typer.Argument(help="The folder of runs and experiments.")] = Path(),
    host: Host = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port; 0 for a free one.")] = 8700,
    token_file: Annotated[Path | None, typer.Option(help="Accepted tokens, one per line.")] = None,
) -> None:
    """Open the workbench: runs, playground, live queries, channels and fragments, in a browser."""
    if not folder.is_dir():
        raise MistakeError(f"{folder} is not a folder: name the folder of your runs, or make it")
    tokens = TokenFile(token_file, host)
    bench = Bench(folder.resolve(), f"http://{host}:{port}/")
    way = " (add ?access_token=TOKEN once)" if tokens else ""
    app = application(bench, tokens)
    gc.freeze()  # else each full garbage collection traverses all modules, and delays an edit
    announce = partial(_say_where, folder, way)
    Serving(app, host, port, bench.leaving.set, announce, alone=True, reload=tokens.reload).run()


def _say_where(folder: Path, way: str, address: str) -> None:
    say(f"the workbench of {folder} is at {address}{way}")
