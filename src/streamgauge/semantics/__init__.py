"""The definition: windows and their contents, when reports are due, and what is sent (docs/semantics.md)."""
