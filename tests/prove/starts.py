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
    """Start so often; 1 when a start went wrong. Each that did is printed as it ends, and every fiftieth number."""
    faults = 0
    with TemporaryDirectory() as folder:
        for number in range(1, starts + 1):
            if fault := start(Path(folder)):
                faults += 1
                print(f"start {number}: {fault}", flush=True)
            if not number % 50 or number == starts:
                print(f"{faults} of {number} starts went wrong", flush=True)
    return min(faults, 1)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
