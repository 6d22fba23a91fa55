"""Long checks that are run by hand: `python -m stress.mutants`."""
