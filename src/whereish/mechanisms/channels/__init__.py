"""Mechanisms with finitely many secrets and reports."""
