// The editor of the playground: continuous SPARQL with colours, completion, and the server's errors underlined.
import { autocompletion, closeBrackets, closeBracketsKeymap, completionKeymap } from "@codemirror/autocomplete"
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands"
import { HighlightStyle, LRLanguage, LanguageSupport, bracketMatching, delimitedIndent, indentNodeProp, indentUnit, syntaxHighlighting, syntaxTree } from "@codemirror/language"
import { lintKeymap, setDiagnostics } from "@codemirror/lint"
import { EditorState } from "@codemirror/state"
import { EditorView, drawSelection, highlightSpecialChars, keymap, lineNumbers } from "@codemirror/view"
import { tags } from "@lezer/highlight"
import { parser } from "./parser.js"

const PREFIXES = {
  rdf: "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
  rdfs: "http://www.w3.org/2000/01/rdf-schema#",
  xsd: "http://www.w3.org/2001/XMLSchema#",
  owl: "http://www.w3.org/2002/07/owl#",
  sosa: "http://www.w3.org/ns/sosa/",
  ssn: "http://www.w3.org/ns/ssn/",
  "om-owl": "http://knoesis.wright.edu/ssw/ont/sensor-observation.owl#",
  weather: "http://knoesis.wright.edu/ssw/ont/weather.owl#",
  "sens-obs": "http://knoesis.wright.edu/ssw/",
  f: "http://larkc.eu/csparql/sparql/jena/ext#",
}
const CLAUSES = [
  ["FROM NAMED WINDOW <w> ON <stream> [RANGE 10s STEP 5s]", "RSP-QL"],
  ["FROM STREAM <stream> [RANGE 10s STEP 5s]", "C-SPARQL"],
  ["STREAM <stream> [RANGE 10s SLIDE 5s] { }", "CQELS-QL"],
  ["FROM NAMED STREAM <stream> [NOW - 10 S SLIDE 5 S]", "SPARQLstream"],
]
const WORDS = ("SELECT CONSTRUCT ASK WHERE FILTER OPTIONAL UNION MINUS GRAPH BIND VALUES DISTINCT GROUP BY HAVING ORDER LIMIT " +
  "OFFSET REGISTER QUERY RSTREAM ISTREAM DSTREAM WINDOW STREAM RANGE STEP SLIDE TRIPLES NOW PREFIX BASE EXISTS NOT IN AS").split(" ")
const FUNCTIONS = "AVG BOUND COALESCE CONTAINS COUNT DATATYPE GROUP_CONCAT IF LANG MAX MIN REGEX SAMPLE STR STRLEN STRSTARTS SUM TIMESTAMP".split(" ")

const indented = parser.configure({ props: [indentNodeProp.add({
  "Group Template": delimitedIndent({ closing: "}" }),
  "Query SelectQuery ConstructQuery AskQuery": context => context.column(context.node.from, 0),
})] })
const language = LRLanguage.define({ name: "continuous-sparql", parser: indented, languageData: { commentTokens: { line: "#" }, closeBrackets: { brackets: ["(", "[", "{", '"', "'"] } } })

const colours = HighlightStyle.define([
  { tag: tags.keyword, class: "q-keyword" },
  { tag: tags.modifier, class: "q-window" },
  { tag: tags.namespace, class: "q-stream" },
  { tag: tags.variableName, class: "q-variable" },
  { tag: tags.link, class: "q-iri" },
  { tag: [tags.string, tags.annotation], class: "q-string" },
  { tag: tags.number, class: "q-number" },
  { tag: tags.lineComment, class: "q-comment" },
  { tag: tags.function(tags.name), class: "q-function" },
])

// The names of a text: prefixes that it declares, its variables, streams and windows.
function names(state) {
  const found = { prefixes: new Map(), variables: new Set(), streams: new Set(), windows: new Set() }
  const text = (from, to) => state.sliceDoc(from, to)
  syntaxTree(state).iterate({
    enter(node) {
      if (node.name === "Prefix") {
        const [name, iri] = [node.node.getChild("PrefixedName"), node.node.getChild("Iri")]
        if (name && iri) found.prefixes.set(text(name.from, name.to).replace(/:$/, ""), text(iri.from + 1, iri.to - 1))
      } else if (node.name === "Variable") found.variables.add(text(node.from, node.to))
      else if (node.name === "StreamName") found.streams.add(text(node.from, node.to))
      else if (node.name === "WindowName") found.windows.add(text(node.from, node.to))
    },
  })
  return found
}

function completions(known) {
  return context => {
    const word = context.matchBefore(/[?$<\w:.\-\/#]+/)
    if (!word && !context.explicit) return null
    const from = word ? word.from : context.pos
    const started = word ? word.text : ""
    const found = names(context.state)
    const before = context.state.sliceDoc(Math.max(0, from - 60), from)
    const streams = new Set([...found.streams, ...known.streams])
    const windows = new Set([...found.windows, ...known.windows])
    const option = (label, type, detail, boost = 0, apply = label) => ({ label, type, detail, boost, apply })
    const options = []
    if (/\b(on|stream)\s+$/i.test(before)) for (const each of streams) options.push(option(each, "namespace", "stream", 5))
    else if (/\b(window|graph)\s+$/i.test(before)) for (const each of windows) options.push(option(each, "namespace", "window", 5))
    else if (/\bprefix\s+$/i.test(before)) for (const [name, iri] of Object.entries(PREFIXES)) options.push(option(`${name}: <${iri}>`, "keyword", "prefix", 5))
    else if (started.startsWith("?") || started.startsWith("$")) for (const each of found.variables) { if (each !== started) options.push(option(each, "variable", "")) }
    else {
      for (const [name] of found.prefixes) options.push(option(`${name}:`, "namespace", found.prefixes.get(name), 2))
      for (const [name, iri] of Object.entries(PREFIXES)) if (!found.prefixes.has(name)) options.push({ label: `${name}:`, type: "namespace", detail: `declare ${iri}`, apply: declare(name, iri) })
      for (const each of [...streams, ...windows]) options.push(option(each, "namespace", streams.has(each) ? "stream" : "window"))
      for (const [clause, dialect] of CLAUSES) options.push(option(clause, "text", dialect, -1))
      for (const each of WORDS) options.push(option(each, "keyword", ""))
      for (const each of FUNCTIONS) options.push(option(each, "function", "", 0, `${each}(`))
    }
    return { from, options, validFor: /^[?$<\w:.\-\/#]*$/ }
  }
}

// A prefix that is not declared yet is declared at the text's begin when it is chosen.
function declare(name, iri) {
  return (view, _completion, from, to) => {
    const line = `PREFIX ${name}: <${iri}>\n`
    view.dispatch({ changes: [{ from: 0, insert: line }, { from, to, insert: `${name}:` }], selection: { anchor: from + line.length + name.length + 1 } })
  }
}

// The first place where a text stops to be continuous SPARQL; nothing where it is.
export function firstError(tree) {
  let found = null
  tree.iterate({ enter(node) { if (node.type.isError && found === null) found = node.from } })
  return found
}

// The same for a text.
export const errorIn = text => firstError(parser.parse(text))

function place(view, error) {
  const { doc } = view.state
  const line = doc.line(Math.min(Math.max(error.line, 1), doc.lines))
  let from = Math.min(line.from + [...line.text].slice(0, error.column - 1).join("").length, line.to)
  let message = error.sentence
  if (message.startsWith("not SPARQL") && !/bracket|not closed/.test(message)) {
    const wrong = errorIn(doc.toString())
    if (wrong !== null) from = wrong
  }
  if (from >= doc.length || /\s/.test(doc.sliceString(from, from + 1))) {
    const rest = /^\s+/.exec(doc.sliceString(from))
    from = rest && from + rest[0].length < doc.length ? from + rest[0].length : Math.max(0, doc.toString().trimEnd().length - 1)
  }
  const token = /^(<[^<>\s]*>|[?$\w:\-]+|[^\s])/.exec(doc.sliceString(from))
  const to = Math.min(doc.length, from + (token ? token[0].length : 1))
  if (message.startsWith("not SPARQL 1.1: expected ")) {
    const at = doc.lineAt(from)
    message = `not SPARQL 1.1: ${doc.sliceString(from, to)} in line ${at.number} does not belong here, or something before it is missing`
  }
  return { from, to, message }
}

export function openEditor(area, changed) {
  const known = { streams: [], windows: [] }
  const label = area.labels && area.labels[0] ? area.labels[0].textContent : "Query"
  const view = new EditorView({
    parent: area.parentElement,
    state: EditorState.create({
      doc: area.value,
      extensions: [
        lineNumbers(), highlightSpecialChars(), history(), drawSelection(), bracketMatching(), closeBrackets(), indentUnit.of("  "),
        new LanguageSupport(language), syntaxHighlighting(colours), autocompletion({ override: [completions(known)] }),
        keymap.of([...closeBracketsKeymap, ...defaultKeymap, ...historyKeymap, ...completionKeymap, ...lintKeymap]),
        EditorView.lineWrapping, EditorView.contentAttributes.of({ "aria-label": label, spellcheck: "false", tabindex: "0" }),
        EditorView.updateListener.of(update => { if (update.docChanged) { area.value = view.state.doc.toString(); changed() } }),
      ],
    }),
  })
  area.hidden = true
  return {
    view,
    text: () => view.state.doc.toString(),
    replace: text => view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: text } }),
    underline: errors => {
      const found = errors.map(error => ({ ...place(view, error), severity: "error" }))
      view.dispatch(setDiagnostics(view.state, found))
      return found.map(each => each.message)
    },
    know: ({ query }) => {
      if (!query) return
      known.streams = query.windows.map(each => `<${each.stream}>`)
      known.windows = query.windows.filter(each => each.name).map(each => `<${each.name}>`)
    },
  }
}
