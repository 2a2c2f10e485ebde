"""An example or two of each command, shown at the end of its help."""

from typing import Final

EXAMPLES: Final[dict[str, tuple[str, ...]]] = {
    "query": (
        "query average.rq --stream readings.nq",
        "query average.rq --stream mqtt://localhost/readings --lateness 2s",
        "query parking.rq --stream parking.ttl --time-property sosa:resultTime",
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
    "import": ("import yabench-test/ --out runs/yabench",),
    "certify": ("certify live --case borders", "certify --program 'node my-engine.js'"),
    "demo": ("demo --out demo-out",),
    "run": ("run select.toml", "run select.toml --set workload.stations=50 --out runs/small"),
    "capacity": ("capacity select.toml --max-delay 1s", "capacity select.toml --load workload.stations --to 64"),
    "generate": ("generate weather --stations 50 --duration 30s --out weather",),
    "workloads": ("workloads",),
    "report": ("report runs/select --out report.html",),
    "engine serve": ("engine serve live --port 8765",),
    "fragments serve": ("fragments serve departures.nq --port 4000",),
    "fragments verify": ("fragments verify store/departures",),
    "broker serve": ("broker serve people.ttl --journal broker.db",),
    "broker verify": ("broker verify broker.db",),
    "broker bridge": ("broker bridge --from mqtt://localhost/readings --to hot=hot.jsonl",),
    "publish": ("publish person.ttl", "publish person.ttl --delete"),
    "subscribe": ("subscribe people --query people.rq --limit 10",),
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
    "doctor": ("doctor",),
    "completion": ("completion bash >> ~/.bashrc", "completion zsh --install"),
}
"""By the command's words after ``streamgauge``."""
