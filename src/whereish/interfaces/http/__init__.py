"""What every server of ours shares: problems, hosts, bounded heads and bodies, and the log."""
