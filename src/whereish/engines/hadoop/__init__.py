"""Outputs on HDFS."""
