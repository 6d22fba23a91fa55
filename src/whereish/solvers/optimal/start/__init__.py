"""Where the solvers of the optimal channel begin: channels and duals that cost milliseconds."""
