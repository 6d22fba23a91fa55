"""Measuring mechanisms: does one keep the metric that it promises."""

from whereish.audit.exact import ExactAudit, exact

__all__ = ["ExactAudit", "exact"]
