// rsp-js on the pipe (docs/pipe.md): its queries rewritten in its own layout, elements handed over one by one.
//
// An element is handed over when all that the one before it made due has been answered; preloaded input is handed
// over at once, which is the only way in which rsp-js 1.3.5 keeps its windows in place. What rsp-js calls the window
// of a row is not passed on: it moves by one slide with every row. It has no notion of advance.
"use strict";
const path = require("path");

const home = process.argv[2];
const from = (name) => require(require.resolve(name, { paths: [home] }));
console.log = console.debug = () => {}; // standard output is the pipe's
const { RSPEngine } = from("rsp-js");
const N3 = require(require.resolve("n3", { paths: [path.dirname(require.resolve("rsp-js", { paths: [home] }))] }));

const say = (line) => process.stdout.write(JSON.stringify(line) + "\n");
const seconds = (text) => String(Math.round(Number(text) * 1000));

// The layout that its parser knows: a clause to a line, durations in plain numbers, WINDOW at the start of a line.
function layout(text) {
  return text
    .replace(/^REGISTER [RID]STREAM (<[^>]*>) AS\s*/i, "")
    .replace(/FROM NAMED WINDOW (<[^>]*>) ON (<[^>]*>) \[RANGE PT([\d.]+)S STEP PT([\d.]+)S\]/g,
      (_all, window, stream, range, step) =>
        `\nFROM NAMED WINDOW ${window} ON STREAM ${stream} [RANGE ${seconds(range)} STEP ${seconds(step)}]\n`)
    .replace(/WINDOW (<[^>]*> \{)/g, "\nWINDOW $1");
}

// Where static data goes: one window with all patterns inside its clause is one graph with it (docs/dialects.md).
function united(text) {
  const [one, ...others] = text.matchAll(/FROM NAMED WINDOW <([^>]*)>/g);
  const inside = /WHERE \{\s*WINDOW </.test(text) && !others.length;
  return inside ? N3.DataFactory.namedNode(one[1]) : N3.DataFactory.defaultGraph();
}

function written(term) {
  if (term.termType === "NamedNode") return `<${term.value}>`;
  if (term.termType === "BlankNode") return `_:${term.value}`;
  const mark = term.language ? `@${term.language}` : `^^<${term.datatype.value}>`;
  return JSON.stringify(term.value) + mark;
}

function quads(text) {
  return new N3.Parser({ format: "N-Triples", blankNodePrefix: "_:" }).parse(text);
}

class Task {
  constructor(task) {
    this.engine = new RSPEngine(layout(task.query));
    this.engine.logger.log = () => {}; // it appends to ./logs, whether there is such a folder or not
    this.pending = [];
    this.watch(this.engine.r2r);
    const graph = united(task.query);
    for (const [s, p, o] of task.static)
      for (const { subject, predicate, object } of quads(`${s} ${p} ${o} .\n`))
        this.engine.addStaticData(N3.DataFactory.quad(subject, predicate, object, graph));
    this.engine.register().on("RStream", ({ bindings }) => {
      const row = [...bindings];
      say({ vars: row.map(([name]) => name.value), add: [row.map(([, term]) => written(term))] });
    });
  }

  // Remember every evaluation that is under way, so that its rows can be waited for.
  watch(r2r) {
    const execute = r2r.execute.bind(r2r);
    r2r.execute = (content) => {
      const rows = execute(content);
      this.pending.push(rows.then((stream) => new Promise((done, failed) => stream.on("end", done).on("error", failed))));
      return rows;
    };
  }

  push(element) {
    const stream = this.engine.getStream(element.stream);
    if (stream) for (const quad of quads(element.add || "")) stream.add(quad, element.t);
  }

  async settle() {
    while (this.pending.length) await Promise.all(this.pending.splice(0));
  }
}

async function main() {
  let task = null, held = null;
  for await (const line of require("readline").createInterface({ input: process.stdin })) {
    const item = JSON.parse(line);
    if (item.query !== undefined) {
      task = new Task(item);
      held = (item.options || {}).preload === true ? [] : null;
      say({ ready: true });
    } else if (item.go) {
      if (held.over) { held.forEach((each) => task.push(each)); held = null; await task.settle(); }
      else { held.over = true; say({ ready: true }); }
    } else if (item.close) {
      await task.settle();
      say({ closed: true });
    } else if (item.t !== undefined) {
      if (held) held.push(item);
      else { task.push(item); await task.settle(); }
    }
  }
  if (task) await task.settle();
}

process.on("unhandledRejection", (error) => { console.error(error); process.exit(1); });
main();
