"""The field test: the black-box auditor against what people use."""
