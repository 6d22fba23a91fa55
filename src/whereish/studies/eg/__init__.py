"""ElSalamouny and Gambs, *Optimal noise functions for location privacy* (2018)."""
