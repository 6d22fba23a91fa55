"""Measuring mechanisms: does one keep the metric that it promises."""

from whereish.audit.characterisations import (
    Attack,
    hiding_attack,
    informed_attack,
    sampled_attacks,
    worst_hiding_attack,
    worst_informed_attack,
)
from whereish.audit.density import DensityAudit, density
from whereish.audit.exact import ExactAudit, exact
from whereish.audit.statistical import StatisticalAudit, statistical
from whereish.audit.support import SupportAudit, TextbookPlanarLaplace, support

__all__ = [
    "Attack",
    "DensityAudit",
    "ExactAudit",
    "StatisticalAudit",
    "SupportAudit",
    "TextbookPlanarLaplace",
    "density",
    "exact",
    "hiding_attack",
    "informed_attack",
    "sampled_attacks",
    "statistical",
    "support",
    "worst_hiding_attack",
    "worst_informed_attack",
]
