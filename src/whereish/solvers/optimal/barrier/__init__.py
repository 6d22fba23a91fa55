"""Rows with a barrier term: Newton directions, factors, columns priced, and rows that enter."""
