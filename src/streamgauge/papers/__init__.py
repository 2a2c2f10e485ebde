"""Published tables and figures beside ours: a paper a module, its published values as data with their source."""
