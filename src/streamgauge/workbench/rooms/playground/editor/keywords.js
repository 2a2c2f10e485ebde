// Keywords in any case, but for "a"; a word that is none of them stays a word (a function, a name, a unit of time).
import * as terms from "./parser.terms.js"

export function keyword(text) {
  if (text === "a") return terms.aWord
  const found = terms[`${text.toLowerCase()}Word`]
  return found === undefined || text.toLowerCase() === "a" ? -1 : found
}
