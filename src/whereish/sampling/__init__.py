"""Exact draws from words: no mechanism, no metric."""
