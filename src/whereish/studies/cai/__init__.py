"""Cai, slides on location differential privacy, with PriLocation."""
