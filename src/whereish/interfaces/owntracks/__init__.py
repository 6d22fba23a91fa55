"""A relay for OwnTracks: phones report to it, others see private reports."""
