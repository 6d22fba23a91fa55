"""Koufogiannis and Pappas, *Location-dependent privacy* (2016)."""
