"""Releasing data through one door that states its guarantee."""
