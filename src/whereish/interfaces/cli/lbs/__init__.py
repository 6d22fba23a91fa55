"""Commands about location services."""
