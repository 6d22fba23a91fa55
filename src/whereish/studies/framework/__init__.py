"""How a study runs: published numbers, findings with computed verdicts, figures and reports."""
