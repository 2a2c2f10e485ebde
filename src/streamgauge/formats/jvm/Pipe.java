package streamgauge;

import java.io.BufferedOutputStream;
import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/**
 * The pipe contract for an engine on the JVM: JSON lines on standard input and output.
 *
 * <p>Standard output is kept for the pipe: whatever the engine's libraries print goes to standard error.
 */
public final class Pipe {
    private final BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8), 1 << 20);
    private final Answers answers = new Answers(new BufferedOutputStream(new FileOutputStream(FileDescriptor.out), 1 << 16));

    private Pipe() {
    }

    /** What starts the engine on a task. */
    public interface Program<T> {
        /** Begins to answer. */
        Session<T> start(Task task, Answers answers) throws Exception;
    }

    /** A query that is being answered; {@code T} is an element in the engine's own form. */
    public interface Session<T> {
        /** The element in the engine's own form. */
        T take(Element element);

        /** An element has come. */
        void push(T element) throws Exception;

        /** Nothing earlier than this time (ms) will come. */
        void advance(long time) throws Exception;

        /** No more input: returns when every answer is out. */
        void close() throws Exception;
    }

    /** A small graph that enters a stream at a time (ms); terms in N-Triples. */
    public record Element(long time, String stream, List<String[]> added) {
    }

    /** The query's text, the semantics' fields, static triples and the engine's options. */
    public record Task(String query, Map<String, Object> semantics, List<String[]> background, Map<String, Object> options) {
    }

    private record Advance(long time) {
    }

    /** Serves tasks until standard input ends, and ends the process: 0, or 1 with the error's trace. */
    public static <T> void serve(Program<T> program) {
        System.setOut(System.err);
        int code = 0;
        try {
            Pipe pipe = new Pipe();
            boolean more = true;
            while (more) {
                more = pipe.task(program);
            }
        } catch (Throwable error) {
            error.printStackTrace();
            System.err.println(error);
            code = 1;
        }
        System.err.flush();
        Runtime.getRuntime().halt(code);
    }

    /** One task; whether another may follow. */
    private <T> boolean task(Program<T> program) throws Exception {
        String first = input.readLine();
        if (first == null) {
            return false;
        }
        Task task = decode(first);
        Session<T> session;
        try {
            session = program.start(task, answers);
        } catch (Exception error) {
            return refused(error);
        }
        answers.line("{\"ready\":true}");
        boolean more = Boolean.TRUE.equals(task.options().get("preload")) ? preloaded(session) : direct(session);
        session.close();
        answers.flush();
        if (more) {
            answers.line("{\"closed\":true}");
        }
        return more;
    }

    /** Says why the engine does not take the task; another may follow. */
    private boolean refused(Exception error) throws IOException {
        error.printStackTrace();
        StringBuilder line = new StringBuilder("{\"refused\":");
        Json.quote(line, "the engine does not take this query: " + error.getMessage());
        answers.line(line.append('}').toString());
        return true;
    }

    private <T> boolean direct(Session<T> session) throws Exception {
        for (String line; (line = input.readLine()) != null; ) {
            Object given = given(session, line);
            if (given == END) {
                return true;
            }
            hand(session, given);
            answers.flush();
        }
        return false;
    }

    private <T> boolean preloaded(Session<T> session) throws Exception {
        List<Object> all = new ArrayList<>();
        for (String line; (line = input.readLine()) != null; ) {
            Object given = given(session, line);
            if (given == GO) {
                break;
            }
            all.add(given);
        }
        System.gc();
        answers.line("{\"ready\":true}");
        if (input.readLine() == null) {
            return false;
        }
        for (Object given : all) {
            hand(session, given);
            answers.flush();
        }
        return direct(session);
    }

    private static final Object END = new Object();
    private static final Object GO = new Object();

    /** An element in the engine's form, an advance, GO or END. */
    private static <T> Object given(Session<T> session, String line) {
        Map<String, Object> data = object(Json.read(line));
        if (data.get("t") instanceof Long time) {
            if (data.get("remove") != null || data.get("until") != null) {
                throw new IllegalArgumentException("element " + data.get("n") + ": this engine cannot take triples away");
            }
            return session.take(new Element(time, (String) data.get("stream"), Terms.triples((String) data.getOrDefault("add", ""))));
        }
        if (data.get("advance") instanceof Long time) {
            return new Advance(time);
        }
        if (data.containsKey("go")) {
            return GO;
        }
        if (data.containsKey("close")) {
            return END;
        }
        throw new IllegalArgumentException("a line that is no element, advance, go or close: " + line);
    }

    @SuppressWarnings("unchecked")
    private static <T> void hand(Session<T> session, Object given) throws Exception {
        if (given instanceof Advance advance) {
            session.advance(advance.time());
        } else {
            session.push((T) given);
        }
    }

    private static Task decode(String line) {
        Map<String, Object> data = object(Json.read(line));
        List<String[]> background = new ArrayList<>();
        for (Object triple : (List<?>) data.getOrDefault("static", List.of())) {
            background.add(((List<?>) triple).toArray(String[]::new));
        }
        Map<String, Object> options = object(data.getOrDefault("options", Map.of()));
        return new Task((String) data.get("query"), object(data.get("semantics")), background, options);
    }

    @SuppressWarnings("unchecked")
    private static Map<String, Object> object(Object value) {
        if (value instanceof Map) {
            return (Map<String, Object>) value;
        }
        throw new IllegalArgumentException("expected a JSON object, not " + value);
    }

    /** Where answers go; any thread may send one. */
    public static final class Answers {
        private final OutputStream output;
        private final Thread main = Thread.currentThread();
        private boolean waiting;

        Answers(OutputStream output) {
            this.output = output;
        }

        /** Sends rows of N-Triples terms, {@code null} unbound; instant (ms) is {@code null} when the engine is silent. */
        public void send(String kind, List<String> variables, List<String[]> rows, Long instant) throws IOException {
            StringBuilder line = new StringBuilder(64 + 100 * rows.size());
            line.append("{\"vars\":");
            list(line, variables.toArray(String[]::new));
            line.append(",\"add\":[");
            for (int i = 0; i < rows.size(); i++) {
                line.append(i == 0 ? "" : ",");
                list(line, rows.get(i));
            }
            line.append(']');
            if (!kind.equals("solutions")) {
                line.append(",\"kind\":\"").append(kind).append('"');
            }
            if (instant != null) {
                line.append(",\"instant\":").append(instant);
            }
            write(line.append('}').toString(), Thread.currentThread() != main);
        }

        void line(String line) throws IOException {
            write(line, true);
        }

        synchronized void flush() throws IOException {
            if (waiting) {
                output.flush();
                waiting = false;
            }
        }

        private synchronized void write(String line, boolean now) throws IOException {
            output.write(line.getBytes(StandardCharsets.US_ASCII));
            output.write('\n');
            waiting = true;
            if (now) {
                flush();
            }
        }

        private static void list(StringBuilder out, String[] items) {
            out.append('[');
            for (int i = 0; i < items.length; i++) {
                out.append(i == 0 ? "" : ",");
                if (items[i] == null) {
                    out.append("null");
                } else {
                    Json.quote(out, items[i]);
                }
            }
            out.append(']');
        }
    }
}
