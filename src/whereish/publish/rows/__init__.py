"""From rows of a table to reports: the plan, locations, times, subjects."""
