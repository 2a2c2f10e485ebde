"""The commands by name: where each is written, its line in the list of commands, the part of the list.

``--help`` shows this and imports no command; a command's module is imported when the command runs.
"""

from enum import StrEnum
from typing import Final, NamedTuple


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
    "expect": CatalogueEntry(CataloguePart.JUDGE, "verdicts", "Print what should be answered, without a run."),
    "check": CatalogueEntry(CataloguePart.JUDGE, "verdicts", "Judge a recorded run again."),
    "explain": CatalogueEntry(CataloguePart.JUDGE, "explain", "Say why a recorded run is wrong."),
    "import": CatalogueEntry(CataloguePart.JUDGE, "importing", "Make run folders of what others recorded."),
    "certify": CatalogueEntry(CataloguePart.JUDGE, "certify", "Run the conformance suite on an engine."),
    "init": CatalogueEntry(CataloguePart.MEASURE, "init", "Write an experiment, a query and a stream to start from."),
    "demo": CatalogueEntry(CataloguePart.MEASURE, "runs", "Answer, judge and show a weather stream."),
    "run": CatalogueEntry(CataloguePart.MEASURE, "runs", "Do an experiment: streams, engines, verdicts, report."),
    "capacity": CatalogueEntry(CataloguePart.MEASURE, "capacity", "Find the highest load that an engine carries."),
    "generate": CatalogueEntry(CataloguePart.MEASURE, "data", "Make a workload's stream."),
    "workloads": CatalogueEntry(CataloguePart.MEASURE, "data", "List the workloads, their parameters and queries."),
    "report": CatalogueEntry(CataloguePart.MEASURE, "show", "Write one page about runs that were judged."),
    "engine": CatalogueEntry(CataloguePart.SERVE, "serve", "Serve continuous queries over HTTP."),
    "fragments": CatalogueEntry(CataloguePart.SERVE, "fragments", "Serve changing Linked Data at low server cost."),
    "broker": CatalogueEntry(CataloguePart.SERVE, "broker", "Serve a broker: publish and subscribe."),
    "publish": CatalogueEntry(CataloguePart.SERVE, "subscribers", "Publish graphs to a broker."),
    "subscribe": CatalogueEntry(CataloguePart.SERVE, "subscribers", "Show a channel's answer as it changes."),
    "reproduce": CatalogueEntry(
        CataloguePart.REPRODUCE, "reproduce", "Print published tables and figures beside ours."
    ),
    "sepbm": CatalogueEntry(CataloguePart.REPRODUCE, "sepbm", "Measure semantic publish/subscribe (SEP-BM)."),
    "engines": CatalogueEntry(CataloguePart.HERE, "engines", "List the engines and the semantics; prepare an engine."),
    "doctor": CatalogueEntry(CataloguePart.HERE, "doctor", "Say what this machine lacks and how to get it."),
    "completion": CatalogueEntry(CataloguePart.HERE, "completion", "Complete commands and names in bash, zsh or fish."),
}
"""In the order of the list, part by part."""
