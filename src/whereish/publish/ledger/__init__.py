"""Budgets: what has been released about whom."""
