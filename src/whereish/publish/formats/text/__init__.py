"""Text with a delimiter between columns: its dialect, the types of its columns, formulas."""
