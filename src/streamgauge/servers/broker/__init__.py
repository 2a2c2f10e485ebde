"""Semantic publish and subscribe: facts come and go, channels are queries, changes of their answers are sent."""
