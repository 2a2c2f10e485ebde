// Asks a client queries: JSON on standard input {client, home, source, type, forget, queries: [text]}; a line of
// JSON per answer. type is what Comunica takes the source for, null for what it finds; forget: between any two queries.
const { createRequire } = require("node:module")

const asked = JSON.parse(require("node:fs").readFileSync(0, "utf8"))
const load = createRequire(asked.home + "/")

const term = t => t.termType === "Literal"
  ? JSON.stringify([t.value, t.language, t.datatype.value])
  : JSON.stringify([t.termType, t.value])

async function byComunica() {
  const { QueryEngine } = load("@comunica/query-sparql")
  const engine = new QueryEngine()
  const source = asked.type === null ? asked.source : { type: asked.type, value: asked.source }
  return async text => {
    if (asked.forget) await engine.invalidateHttpCache()
    const result = await engine.query(text, { sources: [source], lenient: false })
    if (result.resultType === "boolean") return { boolean: await result.execute() }
    const rows = await (await result.execute()).toArray()
    return { rows: rows.map(row => Object.fromEntries([...row].map(([name, value]) => [name.value, term(value)]))) }
  }
}

async function byLdfClient() {
  const ldf = load("ldf-client")
  ldf.Logger.setLevel("error")
  return text => new Promise((resolve, reject) => {
    const fragmentsClient = new ldf.FragmentsClient([asked.source], {})
    const rows = []
    const results = new ldf.SparqlIterator(text, { fragmentsClient, prefixes: {} })
    results.on("error", reject)
    results.on("data", row => rows.push(row))
    results.on("end", () => resolve(results.queryType === "ASK" ? { boolean: rows[0] } : { rows }))
  })
}

async function main() {
  const ask = await (asked.client === "ldf-client" ? byLdfClient() : byComunica())
  for (const text of asked.queries) {
    let answer
    try {
      answer = await ask(text)
    } catch (error) {
      answer = { error: String(error.message || error) }
    }
    process.stdout.write(JSON.stringify(answer) + "\n")
  }
  process.exit(0)
}

main()
