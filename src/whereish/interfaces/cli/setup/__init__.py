"""Commands that make an installation ready."""
