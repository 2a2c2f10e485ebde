"""The catalogue of commands: module, line in the list, and examples of each.

``--help`` shows it without importing a command; a command's module is imported when it runs.
"""

from enum import StrEnum
from typing import Any, Final, NamedTuple


class CataloguePart(StrEnum):
    """A part of the list of commands, in the order shown."""

    ANSWER = "Answer"
    JUDGE = "Judge"
    MEASURE = "Measure"
    SERVE = "Serve"
    REPRODUCE = "Reproduce"
    HERE = "This installation"


class CatalogueEntry(NamedTuple):
    """A command: its part of the list, the module of ``streamgauge.cli`` that registers it, its line."""

    part: CataloguePart
    module: str
    about: str


COMMANDS: Final = {
    "query": CatalogueEntry(CataloguePart.ANSWER, "query", "Answer a continuous query on streams."),
    "watch": CatalogueEntry(CataloguePart.ANSWER, "watch", "Keep a query over changing Linked Data current."),
    "stream": CatalogueEntry(CataloguePart.ANSWER, "stream", "Answer a continuous query on Spark, each answer once."),
    "translate": CatalogueEntry(CataloguePart.ANSWER, "translate", "Print a query in another dialect."),
    "expect": CatalogueEntry(CataloguePart.JUDGE, "verdicts", "Print the expected answers, without a run."),
    "check": CatalogueEntry(CataloguePart.JUDGE, "verdicts", "Judge a recorded run again."),
    "explain": CatalogueEntry(CataloguePart.JUDGE, "verdicts", "Diagnose why a recorded run is wrong."),
    "compare": CatalogueEntry(CataloguePart.JUDGE, "compare", "Compare runs and capacities with a baseline."),
    "import": CatalogueEntry(CataloguePart.JUDGE, "importing", "Convert other tools' recordings to run folders."),
    "certify": CatalogueEntry(CataloguePart.JUDGE, "certify", "Run the conformance suite on an engine."),
    "init": CatalogueEntry(CataloguePart.MEASURE, "init", "Write an experiment, a query and a stream to start from."),
    "demo": CatalogueEntry(CataloguePart.MEASURE, "pipeline", "Answer, judge and show a weather stream."),
    "run": CatalogueEntry(
        CataloguePart.MEASURE, "experiments", "Run an experiment: streams, engines, verdicts, report."
    ),
    "pipeline": CatalogueEntry(
        CataloguePart.MEASURE, "pipeline", "Run an experiment stage by stage, on Spark at any size."
    ),
    "capacity": CatalogueEntry(CataloguePart.MEASURE, "experiments", "Find the highest load that an engine sustains."),
    "generate": CatalogueEntry(CataloguePart.MEASURE, "data", "Generate a workload's stream."),
    "workloads": CatalogueEntry(CataloguePart.MEASURE, "data", "List the workloads, their parameters and queries."),
    "report": CatalogueEntry(CataloguePart.MEASURE, "experiments", "Write one page about judged runs."),
    "ui": CatalogueEntry(CataloguePart.SERVE, "ui", "Open the workbench in a browser."),
    "engine": CatalogueEntry(CataloguePart.SERVE, "serve", "Serve continuous queries over HTTP."),
    "fragments": CatalogueEntry(CataloguePart.SERVE, "fragments", "Serve changing Linked Data at low server cost."),
    "broker": CatalogueEntry(CataloguePart.SERVE, "broker", "Serve a broker: publish and subscribe."),
    "publish": CatalogueEntry(CataloguePart.SERVE, "subscribers", "Publish graphs to a broker."),
    "subscribe": CatalogueEntry(CataloguePart.SERVE, "subscribers", "Show a channel's answer as it changes."),
    "mcp": CatalogueEntry(CataloguePart.SERVE, "mcp", "Serve agents over the Model Context Protocol."),
    "reproduce": CatalogueEntry(
        CataloguePart.REPRODUCE, "reproduce", "Print published tables and figures next to ours."
    ),
    "sepbm": CatalogueEntry(CataloguePart.REPRODUCE, "sepbm", "Measure semantic publish/subscribe (SEP-BM)."),
    "engines": CatalogueEntry(
        CataloguePart.HERE, "installation", "List the engines and the semantics; prepare an engine."
    ),
    "config": CatalogueEntry(CataloguePart.HERE, "configuration", "Print the options of a server with their origins."),
    "docs": CatalogueEntry(CataloguePart.HERE, "docs", "Read this documentation in a browser."),
    "doctor": CatalogueEntry(
        CataloguePart.HERE, "installation", "Print what this machine lacks and how to install it."
    ),
    "completion": CatalogueEntry(CataloguePart.HERE, "completion", "Complete commands and names in bash, zsh or fish."),
}
"""All commands, in the order of the list."""

CONFIGURED: Final = (
    "query", "watch", "stream", "ui", "engine serve", "fragments serve", "broker serve", "broker bridge", "subscribe",
    "mcp", "docs",
)  # fmt: skip
"""Servers and long-running commands, whose options may be in a configuration file."""

EXAMPLES: Final[dict[str, tuple[str, ...]]] = {
    "query": (
        "query average.rq --stream readings.nq",
        "query average.rq --stream mqtt://localhost/readings --lateness 2s",
        "query parks.rq --stream parks.ttl --time-property sosa:resultTime",
    ),
    "watch": (
        "watch board.rq http://localhost:4000/trains",
        "watch board.rq http://localhost:4000/trains --once --json",
    ),
    "stream": ("stream average.rq --from in/ --to out/ --checkpoint state/",),
    "translate": ("translate q5.rq --to cqels",),
    "expect": ("expect average.rq --stream readings.nq --semantics csparql --rows",),
    "check": ("check runs/select/live-csparql-seed1-1", "check runs/q5 --semantics cqels"),
    "explain": ("explain runs/q5",),
    "compare": ("compare runs/before runs/after", "compare --save baseline.json runs", "compare baseline.json runs"),
    "import": ("import yabench-test/ --out runs/yabench",),
    "certify": ("certify live --case borders", "certify --program 'node my-engine.js'"),
    "init": ("init mine",),
    "demo": ("demo --out demo-out",),
    "run": ("run select.toml", "run select.toml --set workload.stations=50 --out runs/small"),
    "pipeline": ("pipeline select.toml", "pipeline select.toml --at s3a://bucket/select --master yarn"),
    "capacity": ("capacity select.toml --max-delay 1s", "capacity select.toml --load workload.stations --to 64"),
    "generate": ("generate weather --stations 50 --duration 30s --out weather",),
    "workloads": ("workloads",),
    "report": ("report runs/select --out report.html", "report runs/select --format markdown"),
    "ui": ("ui", "ui runs --port 8700"),
    "engine serve": ("engine serve live --port 8765",),
    "engine verify": ("engine verify service.state",),
    "fragments serve": ("fragments serve departures.nq --port 4000",),
    "fragments verify": ("fragments verify store/departures",),
    "broker serve": ("broker serve people.ttl --journal broker.db",),
    "broker verify": ("broker verify broker.db",),
    "broker bridge": ("broker bridge --from mqtt://localhost/readings --to hot=hot.jsonl",),
    "publish": ("publish person.ttl", "publish person.ttl --delete"),
    "subscribe": ("subscribe people --query people.rq --limit 10",),
    "mcp": ("mcp",),
    "reproduce csrbench": ("reproduce csrbench --data csrbench/",),
    "reproduce yabench": ("reproduce yabench --data yabench/", "reproduce yabench --engines live --only E1/small"),
    "reproduce tpf": ("reproduce tpf --quick",),
    "reproduce sepbm": ("reproduce sepbm --publications 300",),
    "sepbm generate": ("sepbm generate small --universities 1",),
    "sepbm systems": ("sepbm systems",),
    "sepbm run": ("sepbm run small --system broker_inprocess --out runs/small",),
    "sepbm analyse": ("sepbm analyse runs/small --of small",),
    "sepbm characterise": ("sepbm characterise small",),
    "engines": ("engines", "engines --semantics"),
    "engines prepare": ("engines prepare cqels --source ~/src/cqels",),
    "config": ("config engine serve live --port 9000", "config --config production.toml"),
    "docs": ("docs", "docs --open"),
    "doctor": ("doctor",),
    "completion": ("completion bash >> ~/.bashrc", "completion zsh --install"),
}
"""Examples by command (the words after ``streamgauge``)."""


def words_of(ctx: Any) -> str:
    """The words of a context's command after ``streamgauge``."""
    # The outermost context is the program itself, whose name is left out.
    above = "" if ctx.parent is None or ctx.parent.parent is None else f"{words_of(ctx.parent)} "
    return f"{above}{ctx.info_name}"
