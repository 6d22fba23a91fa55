"""Rows with a barrier term: Newton directions, factors, and rows that enter."""
