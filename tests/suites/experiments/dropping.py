"""An engine on the pipe that keeps the first ROWS observations of a tumbling window of SIZE ms and drops the others.

With an argument it keeps none when it is asked for a time unit of fewer ms than that.
"""

import json
import sys

SIZE, ROWS = 500, 30
FLOAT_VALUE = "#floatValue>"


def say(data):
    sys.stdout.write(json.dumps(data) + "\n")
    sys.stdout.flush()


def main():
    task = json.loads(sys.stdin.readline())
    coarse = len(sys.argv) > 1 and task["semantics"]["time_unit"] < int(sys.argv[1])
    say({"ready": True})
    held, close = [], SIZE
    for line in sys.stdin:
        item = json.loads(line)
        time = item.get("advance", item.get("t"))
        while time >= close:
            rows = [row for at, row in held if at < close][: 0 if coarse else ROWS]
            say({"vars": ["s", "v"], "add": rows, "instant": close, "scope": [close - SIZE, close]})
            held = [(at, row) for at, row in held if at >= close]
            close += SIZE
        for triple in item.get("add", "").splitlines():
            subject, predicate, value = triple.removesuffix(" .").split(" ", 2)
            if predicate.endswith(FLOAT_VALUE):
                held.append((item["t"], [subject, value]))


if __name__ == "__main__":
    main()
