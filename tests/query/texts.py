"""Query texts that go through the corners of the grammar, and data that most of them match."""

PREFIXES = """PREFIX : <http://e/>
PREFIX ex: <http://e/>
PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>
PREFIX rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#>
"""

DATA = """@prefix : <http://e/> . @prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
:a :p :b , :c ; :q :d ; :v 1 , 2.50 ; :n "x"@en , "y" , "5"^^xsd:int .
:b :p :c ; :q :a ; :v 3 , 1e0 ; a :C . :c :p :a ; :v -1 ; a :C ; :list (1 2) .
:d :r [ :v 2 ; :p :a ] ; :n "x" ; :t true ; :p.x "dot" . :e.f :p :a .
"""

TEXTS = """
SELECT * { ?s :p ?o }
select distinct ?s where { ?s :p ?o . } order by ?s limit 2 offset 1
SELECT REDUCED $s { $s :p ?o }
SELECT ?s { ?s :p [ :q ?x ] ; :v ?v . FILTER (?v > 0) ?x :v ?w }
SELECT * { [] :p ?o . [ :v 2 ] :p ?x . _:a :p _:b . _:b :p ?z }
SELECT ?s { ?s :list (1 2) }
SELECT ?s { ?s :list ( ?x [] ) ; a ?c }
SELECT ?s { ?s :n "x"@en , 'y' , '''y''', \"\"\"y\"\"\" }
SELECT ?s { ?s :n "5"^^xsd:int ; :v 2.5, 1 }
SELECT ?s ?v { ?s :v ?v FILTER(?v -1 >= -1.0 && ?v - -1 < 5 && ?v+1>0 || ?v = 1e0) }
SELECT ?s ?v { ?s :v ?v FILTER(!(?v < 2) && -?v < +1 && ?v*2/2 = ?v) }
SELECT ?s ?v { ?s :v ?v FILTER(?v IN (1, 2.5, "x")) }
SELECT ?s ?v { ?s :v ?v FILTER(?v NOT IN (1, 2.5) && ?v IN (3) || ?v IN ()) }
SELECT ?s { ?s :t true , ?x FILTER(?x = true && ?x != false) }
SELECT * { ?s :p ?o OPTIONAL { ?o :q ?x FILTER(?s = :a) } OPTIONAL { ?o :v ?v } FILTER(BOUND(?x) || ?v > 1) }
SELECT * { ?s :p ?o OPTIONAL { { ?o :v ?v FILTER(?v > 1) } } }
SELECT * { ?s :p ?o OPTIONAL { { ?o :v ?v FILTER(?v > 1 || ?s = :a) } FILTER(?s = :a) } }
SELECT * { OPTIONAL { ?s :q ?o } }
SELECT * { { ?s :p ?o } UNION { ?s :q ?o } UNION { ?s :r ?o } . ?o :v ?v }
SELECT * { { ?s :p ?o } { ?o :q ?x } }
SELECT * { ?s :p ?o { ?o :v ?v FILTER(?v > 0) } FILTER(?v < 3) }
SELECT * { ?s :p ?o MINUS { ?s :q ?x } }
SELECT * { ?s :v ?v MINUS { ?s :v ?w FILTER(?w > 2) } FILTER(?v > 0) }
SELECT * { ?s :p ?o FILTER NOT EXISTS { ?o :q ?x FILTER(?x = ?s) } }
SELECT * { ?s :p ?o FILTER(EXISTS { ?o :v ?v } && ?s != :b) }
SELECT * { ?s :v ?v BIND(?v * 2 AS ?w) BIND(?w + 1 AS ?x) FILTER(?x > 3) }
SELECT * { BIND(1 AS ?x) ?s :v ?x }
SELECT ?s (?v * 2 AS ?w) (?w + 1 AS ?x) { ?s :v ?v }
SELECT ?s (COUNT(*) AS ?n) { ?s :v ?v } GROUP BY ?s
SELECT (COUNT(DISTINCT ?v) AS ?n) (SUM(?v) + 1 AS ?t) (AVG(?v) AS ?a) { ?s :v ?v }
SELECT ?k (MIN(?v) AS ?l) (MAX(?v) AS ?h) { ?s :v ?v } GROUP BY (?v > 1 AS ?k) HAVING (COUNT(*) > 1) (MIN(?v) < 5)
SELECT (COUNT(*) AS ?n) { ?s :v ?v } GROUP BY (?v > 1) ORDER BY DESC(COUNT(*)) ?n
SELECT ?s (SUM(?v) AS ?t) { ?s :v ?v } GROUP BY ?s HAVING (?t > 1) ORDER BY ?t
SELECT (COUNT(*) AS ?n) (COUNT(*) + 1 AS ?m) { ?s :nothing ?v } HAVING (COUNT(*) < 3)
SELECT (GROUP_CONCAT(DISTINCT ?n; SEPARATOR="|\\n\\"") AS ?g) { :d :n ?n }
SELECT (SAMPLE(?n) AS ?g) { :d :n ?n }
SELECT (COUNT(DISTINCT *) AS ?n) { ?s :p ?o }
SELECT ?s ?n { ?s :p ?o { SELECT ?o (COUNT(*) AS ?n) { ?o :v ?v } GROUP BY ?o } }
SELECT * { { SELECT ?s { ?s :v ?v } ORDER BY ?v ?s LIMIT 2 } ?s :p ?o }
SELECT * { { SELECT DISTINCT ?s { ?s :v ?v } } UNION { ?s :q ?x } }
SELECT ?s { { SELECT * { ?s :p [] } } }
SELECT * { ?s :v ?v } VALUES ?v { 1 3 }
SELECT ?s (SUM(?v) AS ?t) { ?s :v ?v } GROUP BY ?s VALUES (?s ?z) { (:a UNDEF) (:b "x"@en) }
SELECT * { VALUES (?s ?v) { (:a 1) (UNDEF 3) } ?s :v ?v }
SELECT * { ?s :v ?v VALUES ?s { } }
SELECT * { VALUES () { () () } :a :v ?v }
SELECT * { GRAPH ?g { ?s ?p ?o } }
SELECT * { GRAPH :g { ?s ?p ?o } ?s :p ?x }
SELECT * { ?s :p/:q ?o }
SELECT * { ?s :p/^:q/:v ?o }
SELECT * { ?s ^:p ?o }
SELECT * { ?s (:p|:q)+ ?o }
SELECT * { ?s (:p/:q)* ?o . ?s a ?c }
SELECT * { ?s :p? ?o FILTER(?s = :a) }
SELECT * { ?s !(:p|^:q) ?o }
SELECT * { ?s !a ?o }
SELECT * { ?s !(^a|^:v|rdf:type) ?o }
SELECT * { ?s !:p ?o }
SELECT * { ?s ^(:p/:q) ?o }
SELECT * { ?s (^:p|:q)/:v ?o }
SELECT * { ?s a/^a ?o }
SELECT * { ?s :p ?o ; ; :q ?x ; . }
SELECT (STR(?s) AS ?x) (LANG(?n) AS ?l) (DATATYPE(?n) AS ?d) { ?s :n ?n }
SELECT * { ?s :n ?n FILTER regex(?n, "^X", "i") FILTER langMatches(lang(?n), "*") }
SELECT (IF(?v > 1, "big", "small") AS ?x) (COALESCE(?u, ?v, 0) AS ?y) { ?s :v ?v }
SELECT (CONCAT("a", STR(?v), 'b') AS ?x) (SUBSTR("abcd", 2, 2) AS ?y) (REPLACE("aab", "a", "c") AS ?z) { ?s :v ?v }
SELECT (xsd:integer(?v) AS ?x) (xsd:string(?v) AS ?y) (IRI("http://x/y") AS ?i) (URI(?s) AS ?j) { ?s :v ?v }
SELECT (STRDT("1", xsd:integer) AS ?x) (ABS(-5) AS ?z) (CEIL(1.2) AS ?c) (isNumeric(1) AS ?d) {}
SELECT (isIRI(?o) AS ?a) (isBlank(?o) AS ?b) (isLiteral(?o) AS ?c) (sameTerm(?o, ?s) AS ?e) { ?s ?p ?o }
SELECT (STRBEFORE("a-b", "-") AS ?x) (STRAFTER("a-b", "-") AS ?y) (ENCODE_FOR_URI("a b") AS ?z) (MD5("a") AS ?m) {}
SELECT (YEAR("2015-04-28T10:00:00Z"^^xsd:dateTime) AS ?y) (TZ("2015-04-28T10:00:00+02:00"^^xsd:dateTime) AS ?z) {}
SELECT ("a\\tb\\u00e9\\\\u0041" AS ?x) ('it''s' AS ?y) {}
SELECT * { ?s :p.x ?o . :e.f :p ?x } # a comment with "quotes" and { braces
SELECT * { ?s <http://e/p> ?o FILTER(?s<?o||?s>=?o||!(?s<=?o)) }
ASK { ?s :p :a }
CONSTRUCT { ?s :is ?o . _:x :of ?s } WHERE { ?s :p ?o . _:x :v ?o }
CONSTRUCT { ?o :was [ :p ?s ] } WHERE { ?s :p ?o } ORDER BY ?s LIMIT 2
CONSTRUCT WHERE { ?s :p ?o . ?o :q ?x }
""".replace("('it''s' AS ?y) ", "")

QUERIES = tuple(line for line in TEXTS.splitlines() if line)
