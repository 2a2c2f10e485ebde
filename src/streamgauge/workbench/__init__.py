"""The workbench: pages of one process for runs, semantics, live queries and servers (docs/workbench.md).

``rooms`` are its parts, a module or folder each; ``application`` serves them and lets a browser in that has a token,
``pages`` draws their frame.
"""
