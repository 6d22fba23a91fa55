"""The views: each a module with `routes(bench)`, and what only views need."""
