"""The client's requests: forms, pages, sources of other kinds, joins by few requests."""
