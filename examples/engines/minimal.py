"""A reference engine on the pipe (docs/pipe.md): SELECT with one triple pattern over one window, at every close."""

import json
import re
import sys

TEXT = re.compile(
    r"SELECT ((?:\?\w+ ?)+)\s*FROM NAMED WINDOW <[^>]*> ON <([^>]*)> \[RANGE PT([\d.]+)S STEP PT([\d.]+)S\]"
    r"\s*WHERE \{ WINDOW <[^>]*> \{\s*(\S+) (\S+) (\S+) \.\s*\} \}\s*"
)
HAS = {"borders": "[o, c)", "r2s": "Rstream", "due": "all", "grain": "report", "content": "set", "answers": "bag",
       "clock": "application", "lateness": None}  # fmt: skip


class WindowSession:
    def __init__(self, task):
        self.semantics, match = task["semantics"], TEXT.fullmatch(task["query"])
        for field, value in HAS.items():
            if self.semantics[field] != value:
                raise ValueError(f"{field} = {self.semantics[field]}: this engine has {field} = {value}")
        if not {"window close"} <= set(self.semantics["report"]) <= {"window close", "non-empty content"}:
            raise ValueError("this engine reports when a window closes")
        if self.semantics["origin"] == "first element" or task["static"] or not match:
            raise ValueError("this engine reads SELECT with one triple pattern over one RSP-QL window from t0 on")
        names, self.stream, size, slide, *self.pattern = match.groups()
        self.names, self.size, self.slide = re.findall(r"\w+", names), round(float(size) * 1e3), round(float(slide) * 1e3)
        self.close = self.semantics["t0"] + (self.slide if self.semantics["partial_head"] else self.size)
        self.elements = []

    def take(self, item):
        """An element or an advance: yield the answer of every window that has closed by its time."""
        while self.close <= item.get("advance", item.get("t")):
            start, end = self.close - self.size, self.close
            inside = [e for e in self.elements if start <= e["t"] < end and e.get("until", end) >= end]
            content = {tuple(line.split(" ", 2)) for e in inside for line in e["add"].split(" .\n")[:-1]}
            rows = [row for row in map(self.row, content) if row]
            if (content or len(self.semantics["report"]) == 1) and (rows or self.semantics["notify_empty"]):
                yield {"vars": self.names, "add": rows, "instant": end, "scope": [start, end]}
            self.close += self.slide
            self.elements = [e for e in self.elements if e["t"] >= self.close - self.size]
        if item.get("stream") == self.stream and item["t"] >= self.semantics["t0"]:
            self.elements.append(item)

    def row(self, triple):
        bound = {}
        if all(bound.setdefault(p, t) == t if p[0] == "?" else p == t for p, t in zip(self.pattern, triple)):
            return [bound.get("?" + name) for name in self.names]


for item in map(json.loads, sys.stdin):
    replies = [{"closed": True}]
    if "query" in item:
        try:
            session, replies = WindowSession(item), [{"ready": True}]
        except ValueError as why:
            replies = [{"refused": str(why)}]
    elif "close" not in item:
        replies = session.take(item)
    print("".join(json.dumps(line) + "\n" for line in replies), end="", flush=True)
