"""Tables in files and frames: reading, writing, geometry."""
