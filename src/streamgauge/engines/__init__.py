"""Engines that can be put under test, a module or folder each."""
