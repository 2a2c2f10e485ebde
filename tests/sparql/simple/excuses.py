"""Known differences between the evaluators and SPARQL 1.1, by name in cases.toml -> evaluators (or "parser")."""

PENDING: dict[str, tuple[str, ...]] = {
    # pyoxigraph's parser, which checks queries, refuses an alias of a plain variable
    "the name of a group key given to a variable": ("parser",),
}
