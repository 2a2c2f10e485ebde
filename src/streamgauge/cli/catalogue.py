"""The commands by name: where each is written, its line in the list of commands, the part of the list.

``--help`` shows this and imports no command; a command's module is imported when the command runs.
"""

from enum import StrEnum
from typing import Final, NamedTuple


class Part(StrEnum):
    """A part of the list of commands, in the order shown."""

    ANSWER = "Answer"
    JUDGE = "Judge"
    MEASURE = "Measure"
    SERVE = "Serve"
    REPRODUCE = "Reproduce"
    HERE = "This installation"


class Entry(NamedTuple):
    """A command: its part of the list, the module of ``streamgauge.cli`` that registers it, its line."""

    part: Part
    module: str
    about: str


COMMANDS: Final = {
    "query": Entry(Part.ANSWER, "query", "Answer a continuous query on streams."),
    "watch": Entry(Part.ANSWER, "watch", "Keep a query over changing Linked Data current."),
    "stream": Entry(Part.ANSWER, "stream", "Answer a continuous query on Spark, each answer once."),
    "translate": Entry(Part.ANSWER, "translate", "Print a query in another dialect."),
    "expect": Entry(Part.JUDGE, "judging", "Print what should be answered, without a run."),
    "check": Entry(Part.JUDGE, "judging", "Judge a recorded run again."),
    "explain": Entry(Part.JUDGE, "explain", "Say why a recorded run is wrong."),
    "import": Entry(Part.JUDGE, "importing", "Make run folders of what others recorded."),
    "certify": Entry(Part.JUDGE, "certify", "Run the conformance suite on an engine."),
    "init": Entry(Part.MEASURE, "init", "Write an experiment, a query and a stream to start from."),
    "demo": Entry(Part.MEASURE, "runs", "Answer, judge and show a weather stream."),
    "run": Entry(Part.MEASURE, "runs", "Do an experiment: streams, engines, verdicts, report."),
    "capacity": Entry(Part.MEASURE, "capacity", "Find the highest load that an engine carries."),
    "generate": Entry(Part.MEASURE, "data", "Make a workload's stream."),
    "workloads": Entry(Part.MEASURE, "data", "List the workloads, their parameters and queries."),
    "report": Entry(Part.MEASURE, "show", "Write one page about runs that were judged."),
    "engine": Entry(Part.SERVE, "serve", "Serve continuous queries over HTTP."),
    "fragments": Entry(Part.SERVE, "fragments", "Serve changing Linked Data at low server cost."),
    "broker": Entry(Part.SERVE, "broker", "Serve a broker: publish and subscribe."),
    "publish": Entry(Part.SERVE, "subscribers", "Publish graphs to a broker."),
    "subscribe": Entry(Part.SERVE, "subscribers", "Show a channel's answer as it changes."),
    "reproduce": Entry(Part.REPRODUCE, "reproduce", "Print published tables and figures beside ours."),
    "sepbm": Entry(Part.REPRODUCE, "sepbm", "Measure semantic publish/subscribe (SEP-BM)."),
    "engines": Entry(Part.HERE, "engines", "List the engines and the semantics; prepare an engine."),
    "doctor": Entry(Part.HERE, "doctor", "Say what this machine lacks and how to get it."),
    "completion": Entry(Part.HERE, "completion", "Complete commands and names in bash, zsh or fish."),
}
"""In the order of the list, part by part."""
