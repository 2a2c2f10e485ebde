"""rsp-js 1.3.5 (npm), a JavaScript engine: RSP-QL over time-based windows, run in a Node program on the pipe."""

import os
import shutil
from pathlib import Path

from streamgauge.engines import EngineUnavailableError, beyond_sparql_11, on_the_pipe
from streamgauge.model.algebra import Select
from streamgauge.model.query import ContinuousQuery
from streamgauge.model.semantics import R2S, Semantics
from streamgauge.query.stamps import uses_timestamp
from streamgauge.semantics.profiles import RSPJS
from streamgauge.semantics.refusal import meaningless

DIALECT = "rspql"
PROFILES = (RSPJS.name,)
HOME = "STREAMGAUGE_RSPJS_HOME"

_HERE = Path(__file__).parent


def refuse(query: ContinuousQuery, semantics: Semantics) -> str | None:
    """Why rsp-js cannot answer the query under the semantics; ``None`` if it can."""
    if semantics != RSPJS:
        return f"rsp-js has its own semantics: use {RSPJS.name}"
    if reason := meaningless(query, semantics):
        return reason
    if not isinstance(query.form, Select):
        return "rsp-js has SELECT queries only"
    if uses_timestamp(query.form):
        return "rsp-js has no timestamp()"
    if any(window.window.kind != "time" for window in query.windows):
        return "rsp-js has time-based windows only"
    if (query.r2s or semantics.r2s) is not R2S.RSTREAM:
        return "rsp-js has Rstream only"
    return beyond_sparql_11(query, DIALECT)


def command() -> list[str]:
    """The engine's program on the pipe; EngineUnavailableError says how to get Node and the package."""
    node = shutil.which("node")
    if node is None:
        raise EngineUnavailableError("rsp-js needs Node 18 or newer: install it (Debian: apt-get install nodejs npm)")
    home = Path(os.environ.get(HOME) or _HERE)
    if not (home / "node_modules" / "rsp-js" / "package.json").is_file():
        raise EngineUnavailableError(
            f"the npm package rsp-js is not in {home}: npm install rsp-js@1.3.5 in a folder, and set {HOME} to it"
        )
    return [node, str(_HERE / "rspjs.js"), str(home)]


start = on_the_pipe(refuse, command, DIALECT)
