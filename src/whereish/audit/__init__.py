"""Measuring mechanisms: does one keep the metric that it promises."""
