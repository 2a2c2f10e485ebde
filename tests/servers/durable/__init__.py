"""Tests of durable sessions."""
