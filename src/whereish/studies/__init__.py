"""Studies: one module per reproduced result, each run as a module."""
