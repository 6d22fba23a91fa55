"""Measuring mechanisms: does one keep the metric that it promises.

>>> import whereish as wh
>>> sites = [[0, 0], [100, 0], [200, 0]]
>>> channel = wh.exponential_channel(sites, "0.01/m")
>>> wh.audit.exact(channel, 0.01 * wh.Euclidean(), sites=sites).holds
True
>>> wh.audit.exact(channel, 0.004 * wh.Euclidean(), sites=sites).refuted
True
"""

from whereish.audit.adversary import (
    BayesAttack,
    Identification,
    adversary_error,
    best_attack,
    identification,
    posterior,
    posterior_after,
    uncertainty_area,
)
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
from whereish.audit.families import FamilyAttack, hiding_family, informed_family
from whereish.audit.measures import PrivacyMeasures, privacy_measures
from whereish.audit.statistical import StatisticalAudit, statistical
from whereish.audit.support import SupportAudit, TextbookPlanarLaplace, support
from whereish.audit.usefulness import Usefulness, usefulness
from whereish.audit.utility import error_per_place, quality_loss

__all__ = [
    "Attack",
    "BayesAttack",
    "DensityAudit",
    "ExactAudit",
    "FamilyAttack",
    "Identification",
    "PrivacyMeasures",
    "StatisticalAudit",
    "SupportAudit",
    "TextbookPlanarLaplace",
    "Usefulness",
    "adversary_error",
    "best_attack",
    "density",
    "error_per_place",
    "exact",
    "hiding_attack",
    "hiding_family",
    "identification",
    "informed_attack",
    "informed_family",
    "posterior",
    "posterior_after",
    "privacy_measures",
    "quality_loss",
    "sampled_attacks",
    "statistical",
    "support",
    "uncertainty_area",
    "usefulness",
    "worst_hiding_attack",
    "worst_informed_attack",
]
