"""Linear programmes over channels: the structured solver and its references."""
