package streamgauge;

import java.util.ArrayList;
import java.util.List;

/** Terms and triples in N-Triples, as the pipe carries them. */
public final class Terms {
    private static final String XSD_STRING = "http://www.w3.org/2001/XMLSchema#string";

    private Terms() {
    }

    /** A literal: lexical form, datatype IRI, and language or "". */
    public record Literal(String lexical, String datatype, String language) {
    }

    /** The triples of an N-Triples text whose lines are {@code s p o .} with one blank between. */
    public static List<String[]> triples(String text) {
        List<String[]> triples = new ArrayList<>();
        for (int from = 0, end; from < text.length(); from = end + 1) {
            end = text.indexOf('\n', from);
            end = end < 0 ? text.length() : end;
            int first = text.indexOf(' ', from);
            int second = text.indexOf(' ', first + 1);
            if (first < 0 || second < 0 || second > end - 2 || text.charAt(end - 1) != '.') {
                throw new IllegalArgumentException("not a triple in N-Triples: " + text.substring(from, end));
            }
            int last = text.charAt(end - 2) == ' ' ? end - 2 : end - 1;
            triples.add(new String[] {
                text.substring(from, first), text.substring(first + 1, second), text.substring(second + 1, last)
            });
        }
        return triples;
    }

    /** Whether a term is a literal. */
    public static boolean isLiteral(String term) {
        return term.charAt(0) == '"';
    }

    /** The IRI of a term in angle brackets; any other term as it is. */
    public static String iri(String term) {
        return term.charAt(0) == '<' ? unescape(term.substring(1, term.length() - 1)) : term;
    }

    /** The parts of a literal term. */
    public static Literal literal(String term) {
        int end = term.lastIndexOf('"');
        String lexical = unescape(term.substring(1, end));
        if (end + 1 == term.length()) {
            return new Literal(lexical, XSD_STRING, "");
        }
        if (term.charAt(end + 1) == '@') {
            return new Literal(lexical, "http://www.w3.org/1999/02/22-rdf-syntax-ns#langString", term.substring(end + 2));
        }
        return new Literal(lexical, iri(term.substring(end + 3)), "");
    }

    /** A literal as a term; no datatype ({@code null} or "") is xsd:string. */
    public static String term(String lexical, String datatype, String language) {
        StringBuilder out = new StringBuilder(lexical.length() + 50);
        out.append('"');
        for (int i = 0; i < lexical.length(); i++) {
            char c = lexical.charAt(i);
            switch (c) {
                case '"', '\\' -> out.append('\\').append(c);
                case '\n' -> out.append("\\n");
                case '\r' -> out.append("\\r");
                default -> out.append(c);
            }
        }
        out.append('"');
        if (language != null && !language.isEmpty()) {
            return out.append('@').append(language).toString();
        }
        if (datatype == null || datatype.isEmpty() || datatype.equals(XSD_STRING)) {
            return out.toString();
        }
        return out.append("^^<").append(datatype).append('>').toString();
    }

    private static String unescape(String text) {
        if (text.indexOf('\\') < 0) {
            return text;
        }
        StringBuilder out = new StringBuilder(text.length());
        for (int at = 0; at < text.length(); at++) {
            char c = text.charAt(at);
            if (c != '\\') {
                out.append(c);
                continue;
            }
            char kind = text.charAt(++at);
            int digits = kind == 'u' ? 4 : kind == 'U' ? 8 : 0;
            if (digits > 0) {
                out.appendCodePoint(Integer.parseInt(text, at + 1, at + 1 + digits, 16));
                at += digits;
            } else {
                out.append(switch (kind) {
                    case 'n' -> '\n';
                    case 't' -> '\t';
                    case 'r' -> '\r';
                    case 'b' -> '\b';
                    case 'f' -> '\f';
                    default -> kind;
                });
            }
        }
        return out.toString();
    }
}
