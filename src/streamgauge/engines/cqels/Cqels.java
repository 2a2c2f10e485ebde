package streamgauge.cqels;

import com.espertech.esper.client.EPServiceProviderManager;
import com.hp.hpl.jena.datatypes.TypeMapper;
import com.hp.hpl.jena.graph.Node;
import com.hp.hpl.jena.graph.Triple;
import com.hp.hpl.jena.query.Query;
import com.hp.hpl.jena.rdf.model.AnonId;
import com.hp.hpl.jena.sparql.core.Var;
import com.hp.hpl.jena.sparql.expr.ExprException;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.deri.cqels.data.Mapping;
import org.deri.cqels.engine.ConstructListener;
import org.deri.cqels.engine.ExecContext;
import org.deri.cqels.engine.RDFStream;
import org.deri.cqels.lang.cqels.ParserCQELS;
import streamgauge.Pipe;
import streamgauge.Terms;

/**
 * CQELS 1.x on the pipe: its windows are on arrival time, so advancing does nothing, and it answers while a triple is
 * handed over, one row at a time, so at the end of input nothing is in flight.
 */
public final class Cqels implements Pipe.Session<Cqels.Batch> {
    private static final String STRING = "http://www.w3.org/2001/XMLSchema#string";
    private final Path home = Files.createTempDirectory("streamgauge-cqels");
    private final ExecContext context = new ExecContext(home.toString(), true);
    private final Map<String, RDFStream> streams = new HashMap<>();
    private final Pipe.Answers answers;
    private final List<Var> variables;
    private final List<String> names;

    /** An element as the engine takes it. */
    record Batch(RDFStream stream, List<Triple> triples) {
    }

    public static void main(String[] arguments) {
        Pipe.serve(Cqels::new);
    }

    private Cqels(Pipe.Task task, Pipe.Answers answers) throws Exception {
        this.answers = answers;
        loadBackground(task.background());
        Query query = new Query();
        new ParserCQELS().parse(query, task.query());
        query.setResultVars();
        names = query.isSelectType() ? List.copyOf(query.getResultVars()) : List.of();
        variables = names.stream().map(Var::alloc).toList();
        if (query.isConstructType()) {
            context.registerConstruct(task.query()).register(new Built());
        } else {
            context.registerSelect(task.query()).register(this::row);
        }
    }

    private void loadBackground(List<String[]> triples) throws IOException {
        if (triples.isEmpty()) {
            return;
        }
        Path file = home.resolve("static.nt");
        Files.write(file, triples.stream().map(triple -> String.join(" ", triple) + " .").toList());
        context.loadDefaultDataset(file.toUri().toString());
    }

    @Override
    public Batch take(Pipe.Element element) {
        List<Triple> triples = new ArrayList<>(element.added().size());
        for (String[] triple : element.added()) {
            triples.add(new Triple(node(triple[0]), node(triple[1]), node(triple[2])));
        }
        return new Batch(streams.computeIfAbsent(element.stream(), Cqels.this::stream), triples);
    }

    private RDFStream stream(String name) {
        return new RDFStream(context, name) {
            @Override
            public void stop() {
            }
        };
    }

    private static Node node(String term) {
        if (!Terms.isLiteral(term)) {
            return term.startsWith("_:") ? Node.createAnon(new AnonId(term)) : Node.createURI(Terms.iri(term));
        }
        Terms.Literal literal = Terms.literal(term);
        if (!literal.language().isEmpty()) {
            return Node.createLiteral(literal.lexical(), literal.language(), null);
        }
        if (literal.datatype().equals(STRING)) {
            return Node.createLiteral(literal.lexical()); // as Jena 2 reads the queries' constants
        }
        return Node.createLiteral(literal.lexical(), "", TypeMapper.getInstance().getSafeTypeByName(literal.datatype()));
    }

    @Override
    public void push(Batch batch) {
        for (Triple triple : batch.triples()) {
            batch.stream().stream(triple);
        }
    }

    @Override
    public void advance(long time) {
    }

    @Override
    public void close() throws IOException {
        try {
            context.env().close();
        } catch (IllegalStateException tablesLeftOpen) {
            // it closes them with the environment
        }
        EPServiceProviderManager.getDefaultProvider().initialize();
        ExecContext.deleteDir(home.toFile());
    }

    private void row(Mapping mapping) {
        String[] row = new String[names.size()];
        for (int i = 0; i < row.length; i++) {
            row[i] = value(mapping, variables.get(i));
        }
        send("solutions", List.<String[]>of(row));
    }

    /** A variable's term; {@code null} where the engine has none, or its expression is an error. */
    private String value(Mapping mapping, Var variable) {
        try {
            long id = mapping.get(variable);
            return id < 0 ? null : term(context.engine().decode(id));
        } catch (ExprException error) {
            return null;
        }
    }

    private static String term(Node node) {
        if (node.isBlank()) {
            String label = node.getBlankNodeLabel();
            return label.startsWith("_:") ? label : "_:b" + label.replaceAll("[^0-9A-Za-z]", "x");
        }
        if (node.isURI()) {
            return "<" + node.getURI() + ">";
        }
        return Terms.term(node.getLiteralLexicalForm(), node.getLiteralDatatypeURI(), node.getLiteralLanguage());
    }

    private void send(String kind, List<String[]> rows) {
        try {
            answers.send(kind, names, rows, null);
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    private final class Built extends ConstructListener {
        Built() {
            super(Cqels.this.context);
        }

        @Override
        public void update(List<Triple> graph) {
            List<String[]> rows = new ArrayList<>(graph.size());
            for (Triple triple : graph) {
                rows.add(new String[] {term(triple.getSubject()), term(triple.getPredicate()), term(triple.getObject())});
            }
            send("triples", rows);
        }
    }
}
