"""Bordenabe's thesis, *Measuring privacy with distinguishability metrics* (2014)."""
