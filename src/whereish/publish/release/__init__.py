"""Files that appear whole or not at all, charged once."""

from whereish.publish.release.staging import abandon, finish

__all__ = ["abandon", "finish"]
