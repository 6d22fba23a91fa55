"""Mechanisms on one person's successive places."""
