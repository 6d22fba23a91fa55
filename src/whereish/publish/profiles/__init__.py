"""Profiles of check-ins: PriLocation, its baseline, its error."""
