"""Mechanisms on values and records: geometric noise and its consumers."""
