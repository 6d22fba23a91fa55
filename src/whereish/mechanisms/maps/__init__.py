"""Location-dependent mechanisms: the eikonal mechanism, its queries, its files."""
