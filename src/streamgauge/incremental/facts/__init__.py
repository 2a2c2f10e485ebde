"""Facts that stand until they are deleted, kept once for reasoning and for all queries over them."""
