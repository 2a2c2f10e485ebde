package streamgauge;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** JSON text as maps, lists, strings, longs, doubles, booleans and null; and strings as JSON. */
public final class Json {
    private final String text;
    private int at;

    private Json(String text) {
        this.text = text;
    }

    /** The value of a text; IllegalArgumentException names the position of what is wrong. */
    public static Object read(String text) {
        Json json = new Json(text);
        Object value = json.value();
        json.blanks();
        if (json.at < text.length()) {
            throw json.wrong("the end");
        }
        return value;
    }

    /** Appends a string as JSON, in ASCII. */
    public static void quote(StringBuilder out, CharSequence value) {
        out.append('"');
        for (int i = 0; i < value.length(); i++) {
            char c = value.charAt(i);
            if (c == '"' || c == '\\') {
                out.append('\\').append(c);
            } else if (c >= ' ' && c < 127) {
                out.append(c);
            } else {
                out.append(String.format("\\u%04x", (int) c));
            }
        }
        out.append('"');
    }

    private Object value() {
        blanks();
        char first = at < text.length() ? text.charAt(at) : 0;
        return switch (first) {
            case '{' -> object();
            case '[' -> array();
            case '"' -> string();
            case 't' -> word("true", Boolean.TRUE);
            case 'f' -> word("false", Boolean.FALSE);
            case 'n' -> word("null", null);
            default -> number();
        };
    }

    private Map<String, Object> object() {
        Map<String, Object> fields = new HashMap<>();
        at++;
        if (next('}')) {
            return fields;
        }
        do {
            blanks();
            String name = string();
            need(':');
            fields.put(name, value());
        } while (next(','));
        need('}');
        return fields;
    }

    private List<Object> array() {
        List<Object> items = new ArrayList<>();
        at++;
        if (next(']')) {
            return items;
        }
        do {
            items.add(value());
        } while (next(','));
        need(']');
        return items;
    }

    private String string() {
        if (at >= text.length() || text.charAt(at) != '"') {
            throw wrong("a string");
        }
        int from = ++at;
        int end = text.indexOf('"', from);
        int escape = text.indexOf('\\', from);
        if (end >= 0 && (escape < 0 || escape > end)) {
            at = end + 1;
            return text.substring(from, end);
        }
        return escaped();
    }

    private String escaped() {
        StringBuilder out = new StringBuilder();
        while (true) {
            if (at >= text.length()) {
                throw wrong("the end of a string");
            }
            char c = text.charAt(at++);
            if (c == '"') {
                return out.toString();
            }
            out.append(c == '\\' ? escape() : c);
        }
    }

    private char escape() {
        char c = at < text.length() ? text.charAt(at++) : 0;
        switch (c) {
            case 'n': return '\n';
            case 't': return '\t';
            case 'r': return '\r';
            case 'b': return '\b';
            case 'f': return '\f';
            case '"', '\\', '/': return c;
            case 'u':
                if (at + 4 <= text.length()) {
                    at += 4;
                    return (char) Integer.parseInt(text, at - 4, at, 16);
                }
                break;
            default:
        }
        throw wrong("an escape");
    }

    private Object number() {
        int from = at;
        while (at < text.length() && "+-.eE0123456789".indexOf(text.charAt(at)) >= 0) {
            at++;
        }
        String shown = text.substring(from, at);
        try {
            return shown.matches("-?[0-9]+") ? (Object) Long.valueOf(shown) : (Object) Double.valueOf(shown);
        } catch (NumberFormatException error) {
            at = from;
            throw wrong("a value");
        }
    }

    private Object word(String word, Object value) {
        if (!text.startsWith(word, at)) {
            throw wrong("a value");
        }
        at += word.length();
        return value;
    }

    private boolean next(char c) {
        blanks();
        boolean found = at < text.length() && text.charAt(at) == c;
        at += found ? 1 : 0;
        return found;
    }

    private void need(char c) {
        if (!next(c)) {
            throw wrong("'" + c + "'");
        }
    }

    private void blanks() {
        while (at < text.length() && text.charAt(at) <= ' ') {
            at++;
        }
    }

    private IllegalArgumentException wrong(String expected) {
        return new IllegalArgumentException("not a line of JSON: expected " + expected + " at character " + at);
    }
}
