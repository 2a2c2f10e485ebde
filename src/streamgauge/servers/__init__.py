"""Services: a pure core each, and a thin web face; what all faces share is in ``web``."""
