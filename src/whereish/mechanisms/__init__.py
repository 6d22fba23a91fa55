"""HOW places are blurred: mechanisms that carry their guarantee."""
