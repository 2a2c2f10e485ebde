import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonNull;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Iterator;
import java.util.List;
import org.apache.jena.graph.Node;
import org.apache.jena.graph.Triple;
import org.apache.jena.query.Query;
import org.apache.jena.query.QueryFactory;
import org.apache.jena.query.Syntax;
import org.apache.jena.riot.Lang;
import org.apache.jena.riot.RDFParser;
import org.apache.jena.riot.lang.LabelToNode;
import org.apache.jena.riot.out.NodeFmtLib;
import org.apache.jena.sparql.core.DatasetGraph;
import org.apache.jena.sparql.core.DatasetGraphFactory;
import org.apache.jena.sparql.core.Var;
import org.apache.jena.sparql.engine.binding.Binding;
import org.apache.jena.sparql.exec.QueryExec;
import org.apache.jena.sparql.exec.RowSet;

/** Answers queries, a line of JSON each: {"query", "base", "data"}, data in N-Quads; without data it only reads them. */
public class Jena {
    public static void main(String[] words) throws Exception {
        var lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        var out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        for (String line; (line = lines.readLine()) != null; out.flush()) {
            var reply = new JsonObject();
            try {
                answer(JsonParser.parseString(line).getAsJsonObject(), reply);
            } catch (Exception | StackOverflowError error) {
                reply.addProperty("error", error.getClass().getSimpleName() + ": " + error.getMessage());
            }
            out.println(reply);
        }
    }

    static void answer(JsonObject asked, JsonObject reply) {
        Query query = QueryFactory.create(text(asked, "query"), text(asked, "base"), Syntax.syntaxSPARQL_12);
        if (!asked.has("data")) {
            return;
        }
        DatasetGraph data = DatasetGraphFactory.createTxnMem();
        RDFParser.fromString(text(asked, "data"), Lang.NQUADS)
            .labelToNode(LabelToNode.createUseLabelAsGiven())
            .parse(data);
        var rows = new JsonArray();
        data.executeRead(() -> run(query, data, rows));
        reply.add("rows", rows);
    }

    static void run(Query query, DatasetGraph data, JsonArray rows) {
        try (QueryExec running = QueryExec.dataset(data).query(query).build()) {
            if (query.isAskType()) {
                rows.add(running.ask());
            } else if (query.isConstructType()) {
                for (Iterator<Triple> triples = running.constructTriples(); triples.hasNext(); ) {
                    Triple triple = triples.next();
                    rows.add(row(List.of(triple.getSubject(), triple.getPredicate(), triple.getObject())));
                }
            } else {
                RowSet found = running.select();
                while (found.hasNext()) {
                    Binding binding = found.next();
                    var row = new JsonArray();
                    for (Var variable : found.getResultVars()) {
                        row.add(term(binding.get(variable)));
                    }
                    rows.add(row);
                }
            }
        }
    }

    static JsonArray row(List<Node> nodes) {
        var row = new JsonArray();
        nodes.forEach(node -> row.add(term(node)));
        return row;
    }

    static JsonElement term(Node node) {
        return node == null ? JsonNull.INSTANCE : new com.google.gson.JsonPrimitive(written(node));
    }

    static String written(Node node) {
        if (node.isBlank()) {
            return "_:" + node.getBlankNodeLabel();
        }
        if (node.isTripleTerm()) {
            Triple triple = node.getTriple();
            String parts = written(triple.getSubject()) + " " + written(triple.getPredicate());
            return "<<( " + parts + " " + written(triple.getObject()) + " )>>";
        }
        return NodeFmtLib.strNT(node);
    }

    static String text(JsonObject asked, String name) {
        return asked.get(name).getAsString();
    }
}
