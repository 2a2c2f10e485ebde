"""The client of Linked Data: guarded and cached requests, pages, sources of several kinds, joins."""
