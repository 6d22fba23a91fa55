"""Benchmarks: ratios of CPU time within one run, peers beside us.  ``make bench`` runs all."""
