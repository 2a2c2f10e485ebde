"""Faults injected into right runs, to test the diagnosis: nothing here uses its code."""
