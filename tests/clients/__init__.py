"""Tests of the clients in other languages."""
