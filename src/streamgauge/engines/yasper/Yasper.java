package streamgauge.yasper;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Observable;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.apache.commons.rdf.api.BlankNode;
import org.apache.commons.rdf.api.BlankNodeOrIRI;
import org.apache.commons.rdf.api.Graph;
import org.apache.commons.rdf.api.IRI;
import org.apache.commons.rdf.api.Literal;
import org.apache.commons.rdf.api.RDF;
import org.apache.commons.rdf.api.RDFTerm;
import org.apache.commons.rdf.simple.SimpleRDF;
import org.apache.log4j.Level;
import org.apache.log4j.LogManager;
import org.streamreasoning.rsp4j.api.enums.ReportGrain;
import org.streamreasoning.rsp4j.api.enums.Tick;
import org.streamreasoning.rsp4j.api.operators.r2r.RelationToRelationOperator;
import org.streamreasoning.rsp4j.api.operators.r2r.utils.R2RPipe;
import org.streamreasoning.rsp4j.api.operators.s2r.syntax.WindowNode;
import org.streamreasoning.rsp4j.api.secret.report.Report;
import org.streamreasoning.rsp4j.api.secret.report.ReportImpl;
import org.streamreasoning.rsp4j.api.secret.report.strategies.NonEmptyContent;
import org.streamreasoning.rsp4j.api.secret.report.strategies.OnWindowClose;
import org.streamreasoning.rsp4j.api.secret.time.Time;
import org.streamreasoning.rsp4j.api.secret.time.TimeImpl;
import org.streamreasoning.rsp4j.api.stream.data.DataStream;
import org.streamreasoning.rsp4j.yasper.content.GraphContentFactory;
import org.streamreasoning.rsp4j.yasper.querying.operators.r2r.BGP;
import org.streamreasoning.rsp4j.yasper.querying.operators.r2r.Binding;
import org.streamreasoning.rsp4j.yasper.querying.operators.r2r.joins.HashJoinAlgorithm;
import org.streamreasoning.rsp4j.yasper.querying.operators.windowing.CSPARQLStreamToRelationOp;
import org.streamreasoning.rsp4j.yasper.querying.syntax.SimpleRSPQLQuery;
import org.streamreasoning.rsp4j.yasper.querying.syntax.TPQueryFactory;
import streamgauge.Pipe;
import streamgauge.Terms;

/**
 * YASPER's operators on the pipe: its RSP-QL parser, its C-SPARQL window, its basic graph pattern with the hash join, its
 * filter. An element is a graph; a window is reported when a later element comes, so advancing does nothing.
 */
public final class Yasper implements Pipe.Session<Yasper.Item> {
    private static final Pattern BLANK = Pattern.compile("_:(\\w+)");
    private static final Pattern SELECT = Pattern.compile("(?s)^.*?SELECT\\s+(?:(?:RSTREAM|DISTINCT)\\s+)*((?:\\?\\w+\\s+)+).*$", Pattern.CASE_INSENSITIVE);

    private final RDF rdf = new SimpleRDF();
    private final Pipe.Answers answers;
    private final List<String> variables;
    private final String stream;
    private final CSPARQLStreamToRelationOp<Graph, Graph> window;
    private final RelationToRelationOperator<Graph, Binding> pattern;

    /** An element as the engine takes it; {@code null} is one of a stream that the query does not read. */
    record Item(Graph graph, long time) {
    }

    public static void main(String[] arguments) {
        LogManager.getRootLogger().setLevel(Level.OFF);
        Pipe.serve(Yasper::new);
    }

    private Yasper(Pipe.Task task, Pipe.Answers answers) {
        this.answers = answers;
        variables = List.of(SELECT.matcher(task.query()).replaceFirst("$1").trim().replace("?", "").split("\\s+"));
        var query = (SimpleRSPQLQuery<Binding>) TPQueryFactory.parse(BLANK.matcher(task.query()).replaceAll("?blank_$1"));
        Map.Entry<WindowNode, DataStream<Graph>> read = query.getWindowMap().entrySet().iterator().next();
        stream = read.getValue().getName();
        pattern = query.r2r();
        for (RelationToRelationOperator<Graph, Binding> part : pattern.getR2RComponents().values()) {
            joinByHash(part);
        }
        Time time = new TimeImpl(0);
        Report report = new ReportImpl();
        report.add(new NonEmptyContent());
        report.add(new OnWindowClose());
        WindowNode node = read.getKey();
        IRI name = rdf.createIRI(node.iri());
        window = new CSPARQLStreamToRelationOp<>(
            name, node.getRange(), node.getStep(), time, Tick.TIME_DRIVEN, report, ReportGrain.SINGLE, new GraphContentFactory(time));
        window.addObserver(this::report);
    }

    private static void joinByHash(RelationToRelationOperator<?, ?> part) {
        if (part instanceof BGP group) {
            group.setJoinAlgorithm(new HashJoinAlgorithm());
        } else if (part instanceof R2RPipe<?, ?> pipe) {
            Stream.of(pipe.getR2rs()).forEach(Yasper::joinByHash);
        }
    }

    @Override
    public Item take(Pipe.Element element) {
        if (!element.stream().equals(stream)) {
            return new Item(null, element.time());
        }
        Graph graph = rdf.createGraph();
        for (String[] triple : element.added()) {
            graph.add((BlankNodeOrIRI) term(triple[0]), (IRI) term(triple[1]), term(triple[2]));
        }
        return new Item(graph, element.time());
    }

    private RDFTerm term(String term) {
        if (term.startsWith("_:")) {
            return rdf.createBlankNode(term.substring(2));
        }
        if (!Terms.isLiteral(term)) {
            return rdf.createIRI(Terms.iri(term));
        }
        Terms.Literal literal = Terms.literal(term);
        return literal.language().isEmpty()
            ? rdf.createLiteral(literal.lexical(), rdf.createIRI(literal.datatype()))
            : rdf.createLiteral(literal.lexical(), literal.language());
    }

    @Override
    public void push(Item item) {
        if (item.graph() != null) {
            window.windowing(item.graph(), item.time());
        }
    }

    @Override
    public void advance(long time) {
    }

    @Override
    public void close() {
    }

    private void report(Observable operator, Object now) {
        Graph content = window.content((Long) now).coalesce();
        List<String[]> rows = new ArrayList<>();
        pattern.eval(Stream.of(content)).forEach(binding -> rows.add(row(binding)));
        if (rows.isEmpty()) {
            return;
        }
        try {
            answers.send("solutions", variables, rows, null);
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    private String[] row(Binding binding) {
        return variables.stream().map(name -> written(binding.value(name))).toArray(String[]::new);
    }

    private static String written(RDFTerm term) {
        if (term instanceof Literal literal) {
            return Terms.term(literal.getLexicalForm(), literal.getDatatype().getIRIString(), literal.getLanguageTag().orElse(""));
        }
        if (term instanceof BlankNode blank) {
            return "_:b" + blank.uniqueReference().replaceAll("[^0-9A-Za-z]", "x");
        }
        return term == null ? null : term.ntriplesString();
    }
}
