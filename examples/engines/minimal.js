// A reference engine on the pipe (docs/pipe.md): SELECT with one triple pattern over one window, at every close.
"use strict";

const TEXT = new RegExp(
  String.raw`^SELECT ((?:\?\w+ ?)+)\s*FROM NAMED WINDOW <[^>]*> ON <([^>]*)> \[RANGE PT([\d.]+)S STEP PT([\d.]+)S\]` +
  String.raw`\s*WHERE \{ WINDOW <[^>]*> \{\s*(\S+) (\S+) (\S+) \.\s*\} \}\s*$`);
const HAS = { borders: "[o, c)", r2s: "Rstream", due: "all", grain: "report", content: "set", answers: "bag",
              clock: "application", lateness: null };

class WindowSession {
  constructor(task) {
    const match = TEXT.exec(task.query), semantics = this.semantics = task.semantics;
    for (const [field, value] of Object.entries(HAS))
      if (semantics[field] !== value) throw Error(`${field} = ${semantics[field]}: this engine has ${field} = ${value}`);
    if (!["window close", "non-empty content,window close"].includes(semantics.report.slice().sort().join()))
      throw Error("this engine reports when a window closes");
    if (semantics.origin === "first element" || task.static.length || !match)
      throw Error("this engine reads SELECT with one triple pattern over one RSP-QL window from t0 on");
    [this.names, this.stream, this.pattern] = [match[1].match(/\w+/g), match[2], match.slice(5, 8)];
    [this.size, this.slide] = [Math.round(match[3] * 1e3), Math.round(match[4] * 1e3)];
    this.close = semantics.t0 + (semantics.partial_head ? this.slide : this.size);
    this.elements = [];
  }

  // An element or an advance: write the answer of every window that has closed by its time.
  take(item) {
    for (; this.close <= (item.advance ?? item.t); this.close += this.slide) {
      const start = this.close - this.size, end = this.close;
      const inside = this.elements.filter((e) => start <= e.t && e.t < end && (e.until ?? end) >= end);
      const content = new Set(inside.flatMap((e) => e.add.split(" .\n").slice(0, -1)));
      const rows = [...content].map((line) => this.row(line)).filter(Boolean);
      if ((content.size || this.semantics.report.length === 1) && (rows.length || this.semantics.notify_empty))
        write({ vars: this.names, add: rows, instant: end, scope: [start, end] });
      this.elements = this.elements.filter((e) => e.t >= start + this.slide);
    }
    if (item.stream === this.stream && item.t >= this.semantics.t0) this.elements.push(item);
  }

  row(line) {
    const [, ...triple] = /^(\S+) (\S+) (.*)$/s.exec(line), bound = new Map();
    const fits = this.pattern.every((part, i) => part[0] !== "?" ? part === triple[i]
      : (bound.get(part) ?? bound.set(part, triple[i]).get(part)) === triple[i]);
    return fits ? this.names.map((name) => bound.get("?" + name) ?? null) : null;
  }
}

const write = (line) => process.stdout.write(JSON.stringify(line) + "\n");
let session;
require("readline").createInterface({ input: process.stdin }).on("line", (line) => {
  const item = JSON.parse(line);
  if (item.close) return write({ closed: true });
  if (item.query === undefined) return session.take(item);
  try { session = new WindowSession(item); } catch (why) { return write({ refused: why.message }); }
  write({ ready: true });
});
