"""``whereish sanitize``, and what it reads and writes beside files."""
