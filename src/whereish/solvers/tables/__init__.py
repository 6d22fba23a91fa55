"""Laws of few reports, as tables over all cells of a map."""
