// Colours of the terminals.
import { styleTags, tags } from "@lezer/highlight"

export const highlighting = styleTags({
  Keyword: tags.keyword,
  "WindowSpec/Keyword WindowSpec/Word Duration/Word": tags.modifier,
  "StreamName/Iri StreamName/PrefixedName WindowName/Iri WindowName/PrefixedName": tags.namespace,
  "Name/Word QueryName/Keyword": tags.definition(tags.name),
  FunctionName: tags.function(tags.name),
  Variable: tags.variableName,
  "Iri PrefixedName": tags.link,
  BlankNode: tags.atom,
  String: tags.string,
  Language: tags.annotation,
  Number: tags.number,
  Comment: tags.lineComment,
  "( )": tags.paren,
  "[ ]": tags.squareBracket,
  "{ }": tags.brace,
})
