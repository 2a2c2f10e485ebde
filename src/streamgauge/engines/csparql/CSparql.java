package streamgauge.csparql;

import com.espertech.esper.client.EPServiceProviderManager;
import com.hp.hpl.jena.query.QuerySolution;
import com.hp.hpl.jena.query.ResultSet;
import com.hp.hpl.jena.query.ResultSetFactory;
import com.hp.hpl.jena.rdf.model.Literal;
import com.hp.hpl.jena.rdf.model.RDFNode;
import eu.larkc.csparql.cep.api.RdfQuadruple;
import eu.larkc.csparql.cep.api.RdfStream;
import eu.larkc.csparql.common.RDFTable;
import eu.larkc.csparql.common.RDFTuple;
import eu.larkc.csparql.common.config.Config;
import eu.larkc.csparql.core.Configuration;
import eu.larkc.csparql.core.engine.CsparqlEngineImpl;
import eu.larkc.csparql.core.engine.CsparqlQueryResultProxy;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.Charset;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.jena.riot.system.stream.StreamManager;
import streamgauge.Pipe;
import streamgauge.Terms;

/**
 * C-SPARQL 0.9.7 on the pipe: by its external clock under application time, else by Esper's own clock, as YABench ran it.
 *
 * <p>An element's triples are handed over one by one; a literal is {@code lexical^^datatype}, as the engine wants it.
 * Its clock moves only with a triple, so advancing puts one on a stream that no query reads. By Esper's own clock, too,
 * 0.9.7 begins its windows with the whole second before the first triple (0.9.5, which YABench ran, with the triple), so
 * it is ready at the beginning of a second. The last window closes after the end of input: it waits for the longest
 * window and two seconds, as YABench did, or for as long as the option {@code settle} says (ms).
 */
public final class CSparql implements Pipe.Session<CSparql.Batch> {
    private static final Pattern STREAM = Pattern.compile("FROM\\s+(?:NAMED\\s+)?STREAM\\s*<([^>]*)>", Pattern.CASE_INSENSITIVE);
    private static final Pattern NAME = Pattern.compile("(REGISTER\\s+(?:QUERY|STREAM)\\s+)<[^>]*>", Pattern.CASE_INSENSITIVE);
    private static final Pattern RANGE = Pattern.compile("RANGE\\s+([0-9]+)\\s*(ms|s|m|h|d)", Pattern.CASE_INSENSITIVE);
    private static final Pattern GRAPH = Pattern.compile("FROM\\s*<([^>]*)>", Pattern.CASE_INSENSITIVE);
    private static final Pattern BLANK = Pattern.compile("-?[0-9a-f]+:-?[0-9a-f]+:-?[0-9a-f]+");
    private static final Map<String, Long> UNITS = Map.of("ms", 1L, "s", 1000L, "m", 60_000L, "h", 3_600_000L, "d", 86_400_000L);
    private static final String BACKGROUND = "urn:streamgauge:static";
    private static final String CLOCK = "urn:streamgauge:clock";
    private static final long SETTLE_MS = 2000;
    private static final long SECOND_MS = 1000;

    private final CsparqlEngineImpl engine = new CsparqlEngineImpl();
    private final Map<String, RdfStream> streams = new HashMap<>();
    private final Pipe.Answers answers;
    private final boolean external;
    private final boolean counts;
    private final long tick;
    private final long settle;
    private final String query;

    /** An element as the engine takes it: subject, predicate, object of each triple, and when it was (ms). */
    record Batch(RdfStream stream, long time, List<String[]> triples) {
    }

    public static void main(String[] arguments) {
        StreamManager.get().clearLocators();
        Pipe.serve(CSparql::new);
    }

    private CSparql(Pipe.Task task, Pipe.Answers answers) throws Exception {
        this.answers = answers;
        external = "application".equals(task.semantics().get("clock"));
        tick = (Long) task.semantics().get("time_unit");
        long longest = longest(task.query());
        counts = longest == 0;
        settle = task.options().get("settle") instanceof Long ms ? ms : longest + SETTLE_MS;
        Properties properties = new Properties();
        properties.setProperty("esper.externaltime.enabled", Boolean.toString(external));
        properties.setProperty("esper.externaltime.tick", Long.toString(tick));
        Config.INSTANCE.setConfigParams(properties);
        engine.initialize(task.query().contains("jena/ext#timestamp"));
        for (Matcher found = STREAM.matcher(task.query()); found.find(); ) {
            streams.computeIfAbsent(found.group(1), this::register);
        }
        streams.put(CLOCK, register(CLOCK));
        String text = NAME.matcher(withBackground(task)).replaceFirst("$1query");
        Configuration.getCurrentConfiguration().createTranslator(engine).translate(text);
        CsparqlQueryResultProxy proxy = engine.registerQuery(text, false);
        query = proxy.getId();
        proxy.addObserver((from, table) -> report((RDFTable) table));
        if (!external) {
            Thread.sleep(SECOND_MS - System.currentTimeMillis() % SECOND_MS);
        }
    }

    private RdfStream register(String name) {
        return engine.registerStream(new RdfStream(name));
    }

    private static long longest(String query) {
        long found = 0;
        for (Matcher range = RANGE.matcher(query); range.find(); ) {
            found = Math.max(found, Long.parseLong(range.group(1)) * UNITS.get(range.group(2).toLowerCase()));
        }
        return found;
    }

    /** Puts static data into the engine under the graph that the query reads, and makes it read one if it does not. */
    private String withBackground(Pipe.Task task) {
        if (task.background().isEmpty()) {
            return task.query();
        }
        StringBuilder turtle = new StringBuilder();
        task.background().forEach(triple -> turtle.append(String.join(" ", triple)).append(" .\n"));
        Matcher graph = GRAPH.matcher(task.query());
        boolean named = graph.find();
        engine.putStaticNamedModel(named ? graph.group(1) : BACKGROUND, turtle.toString());
        Matcher stream = STREAM.matcher(task.query());
        return named ? task.query() : stream.replaceFirst("FROM <" + BACKGROUND + "> $0");
    }

    @Override
    public Batch take(Pipe.Element element) {
        List<String[]> triples = new ArrayList<>(element.added().size());
        for (String[] triple : element.added()) {
            triples.add(new String[] {Terms.iri(triple[0]), Terms.iri(triple[1]), object(triple[2])});
        }
        return new Batch(streams.get(element.stream()), element.time(), triples);
    }

    private static String object(String term) {
        if (!Terms.isLiteral(term)) {
            return Terms.iri(term);
        }
        Terms.Literal literal = Terms.literal(term);
        return literal.language().isEmpty() ? literal.lexical() + "^^" + literal.datatype() : term;
    }

    @Override
    public void push(Batch batch) {
        if (batch.stream() == null) {
            return;
        }
        for (String[] triple : batch.triples()) {
            long time = external ? batch.time() : System.currentTimeMillis();
            batch.stream().put(new RdfQuadruple(triple[0], triple[1], triple[2], time));
        }
    }

    @Override
    public void advance(long time) {
        if (external && !counts) {
            streams.get(CLOCK).put(new RdfQuadruple(CLOCK, CLOCK, CLOCK, time + 1));
        }
    }

    @Override
    public void close() throws Exception {
        if (!external) {
            Thread.sleep(settle);
        }
        engine.unregisterQuery(query);
        engine.destroy();
    }

    private void report(RDFTable table) {
        Long instant = null;
        if (external && !counts) {
            long now = EPServiceProviderManager.getDefaultProvider().getEPRuntime().getCurrentTime();
            instant = Math.floorDiv(now, tick) * tick;
        }
        try {
            if (table.getJsonSerialization().isEmpty()) {
                String said = table.iterator().next().get(0);
                answers.send("boolean", List.of(), List.<String[]>of(new String[] {Terms.term(said, "http://www.w3.org/2001/XMLSchema#boolean", "")}), instant);
            } else if (table.getJsonSerialization().stripLeading().matches("(?s)\\{\\s*\"head\".*")) {
                answers.send("solutions", List.copyOf(table.getNames()), rows(table), instant);
            } else {
                answers.send("triples", List.of(), rows(table), instant);
            }
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    /** The rows of the engine's table; those of its JSON where the table does not tell a language. */
    private static List<String[]> rows(RDFTable table) {
        List<String[]> rows = new ArrayList<>(table.size());
        int width = table.getNames().size();
        for (RDFTuple tuple : table) {
            String[] row = new String[width];
            for (int i = 0; i < width; i++) {
                String field = tuple.get(i);
                if (field.endsWith("\"^^null") && table.getJsonSerialization().contains("\"xml:lang\"")) {
                    return told(table);
                }
                row[i] = term(field);
            }
            rows.add(row);
        }
        return rows;
    }

    /** A field of the engine's table: IRI, {@code "lexical"^^datatype}, a blank node's label, or nothing. */
    private static String term(String field) {
        if (field.isEmpty()) {
            return null;
        }
        int end = field.lastIndexOf("\"^^");
        if (field.charAt(0) == '"' && end > 0) {
            String datatype = field.substring(end + 3);
            return Terms.term(field.substring(1, end), datatype.equals("null") ? "" : datatype, "");
        }
        if (field.charAt(0) == '"' || field.startsWith("_:")) {
            return field;
        }
        return BLANK.matcher(field).matches() ? "_:b" + field.replace(':', '-').replace("-", "x") : "<" + field + ">";
    }

    private static List<String[]> told(RDFTable table) {
        byte[] json = table.getJsonSerialization().getBytes(Charset.defaultCharset());
        ResultSet results = ResultSetFactory.fromJSON(new ByteArrayInputStream(json));
        List<String[]> rows = new ArrayList<>(table.size());
        while (results.hasNext()) {
            QuerySolution solution = results.next();
            rows.add(table.getNames().stream().map(solution::get).map(CSparql::node).toArray(String[]::new));
        }
        return rows;
    }

    private static String node(RDFNode node) {
        if (node == null) {
            return null;
        }
        if (node.isAnon()) {
            return "_:b" + node.toString().replaceAll("[^0-9A-Za-z]", "x");
        }
        if (!node.isLiteral()) {
            return term(node.toString());
        }
        Literal literal = node.asLiteral();
        return Terms.term(literal.getLexicalForm(), literal.getDatatypeURI(), literal.getLanguage());
    }
}
