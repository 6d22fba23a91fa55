"""Projections: one pinned operation, and how far it stretches, proven."""
