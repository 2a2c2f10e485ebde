"""`streamgauge certify --jobs 4`, started again and again: threads that judge at once meet modules half imported.

`python -m tests.prove.starts 500` prints the starts that did not end with a certificate, and how many there were.
"""

import shlex
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

SILENT = """import json, sys
for line in sys.stdin:
    item = json.loads(line)
    reply = {"ready": True} if "query" in item else {"closed": True} if "close" in item else None
    if reply:
        print(json.dumps(reply), flush=True)
"""
"""An engine that takes every task and answers nothing, so each task reaches the judge."""

CASE, PROFILE, TASKS = "an error", "cqels-1.x", 5
"""Five tasks that take equally long, so four threads judge at once; arrival times count under the profile, so each
chooses an evaluator by its cost."""


def start(folder: Path) -> str:
    """Certify the silent engine once; how the command went wrong, empty where it judged every task."""
    program = folder / "silent.py"
    program.write_text(SILENT, encoding="utf-8")
    words = ["--program", shlex.join([sys.executable, str(program)]), "--jobs", "4"]
    command = [sys.executable, "-m", "streamgauge.cli.main", "certify", *words, "--case", CASE, "--semantics", PROFILE]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    if done.returncode == 1 and f": not certified, {TASKS} tasks: {TASKS} failing" in done.stdout:
        return ""
    return f"exit code {done.returncode}: {(done.stderr.strip() or done.stdout.strip())[-1000:]}"


def main(starts: int) -> int:
    """Start so often; the number of starts that went wrong, each printed."""
    with TemporaryDirectory() as folder:
        faults = [fault for _ in range(starts) if (fault := start(Path(folder)))]
    print(*faults, f"{len(faults)} of {starts} starts went wrong", sep="\n")
    return min(len(faults), 1)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
