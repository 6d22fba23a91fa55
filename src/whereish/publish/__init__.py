"""Releasing data through one entry point, which states its guarantee."""
