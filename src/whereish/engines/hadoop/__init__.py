"""Outputs on HDFS; an interrupted release is finished, or given up."""

from whereish.engines.hadoop.release import abandon, finish

__all__ = ["abandon", "finish"]
