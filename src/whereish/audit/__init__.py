"""Measuring mechanisms: does one keep the metric that it promises."""

from whereish.audit.density import DensityAudit, density
from whereish.audit.exact import ExactAudit, exact
from whereish.audit.statistical import StatisticalAudit, statistical
from whereish.audit.support import SupportAudit, TextbookPlanarLaplace, support

__all__ = [
    "DensityAudit",
    "ExactAudit",
    "StatisticalAudit",
    "SupportAudit",
    "TextbookPlanarLaplace",
    "density",
    "exact",
    "statistical",
    "support",
]
