"""Integer rows, their ratios, their posteriors."""
