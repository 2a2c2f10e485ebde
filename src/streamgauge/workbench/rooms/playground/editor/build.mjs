// Builds static/editor.js: `npm ci && npm run build` in this folder, or in a copy of it with --to FOLDER.
// The first line of the built file has the digest of its sources, which a test compares (tests/workbench/playground).
import { buildParserFile } from "@lezer/generator"
import { build } from "esbuild"
import { createHash } from "node:crypto"
import { readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"

const here = dirname(fileURLToPath(import.meta.url))
const to = process.argv.includes("--to") ? process.argv[process.argv.indexOf("--to") + 1] : join(here, "..", "static")
const SOURCES = ["build.mjs", "editor.js", "highlighting.js", "keywords.js", "package-lock.json", "package.json", "sparql.grammar"]

function digest() {
  const hash = createHash("sha256")
  for (const name of SOURCES) hash.update(`${name}\n`).update(readFileSync(join(here, name)))
  return hash.digest("hex")
}

// The licence of every package that is in the built file.
function licences() {
  const modules = join(here, "node_modules")
  const found = []
  for (const folder of readdirSync(modules)) {
    const names = folder.startsWith("@") ? readdirSync(join(modules, folder)).map(name => `${folder}/${name}`) : [folder]
    for (const name of names) {
      if (!used.has(name)) continue
      const { version, license } = JSON.parse(readFileSync(join(modules, name, "package.json"), "utf8"))
      const text = readFileSync(join(modules, name, "LICENSE"), "utf8").trim()
      found.push(`${name} ${version} (${license})\n\n${text}\n`)
    }
  }
  return found.join(`\n${"-".repeat(72)}\n\n`)
}

const generated = buildParserFile(readFileSync(join(here, "sparql.grammar"), "utf8"), { fileName: "sparql.grammar" })
writeFileSync(join(here, "parser.js"), generated.parser)
writeFileSync(join(here, "parser.terms.js"), generated.terms)
const result = await build({
  entryPoints: [join(here, "editor.js")],
  bundle: true, minify: true, format: "esm", target: "es2022", legalComments: "none", metafile: true, write: false,
})
const used = new Set(Object.keys(result.metafile.inputs).map(path => /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(path)?.[1]).filter(Boolean))
writeFileSync(join(to, "editor.js"), `/* Built from editor/ by build.mjs; digest of the sources: ${digest()}; licences: editor.licences.txt */\n${result.outputFiles[0].text}`)
writeFileSync(join(to, "editor.licences.txt"), licences())
for (const name of ["parser.js", "parser.terms.js"]) rmSync(join(here, name))
