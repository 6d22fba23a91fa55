"""Built-in examples that need no download: for the demo, the command line and the benchmarks."""
