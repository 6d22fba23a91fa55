"""All studies by name: to add one, write its module and its line here."""

from __future__ import annotations

from importlib import import_module

from whereish.errors import InvalidInput
from whereish.studies.framework.study import Study

__all__ = ["ALL", "STUDIES", "chosen", "study"]

ALL = "all"

STUDIES = {
    "kp-table": "kp.table",
    "kp-optimum": "kp.optimum",
    "kp-laws": "kp.laws",
    "kp-wealth": "kp.wealth",
    "eg-symmetry": "eg.symmetry",
    "eg-radials": "eg.radials",
    "eg-remaps": "eg.remaps",
    "b-records": "bordenabe.records",
    "b-precision": "bordenabe.precision",
    "b-areas": "bordenabe.areas",
    "b-commuters": "bordenabe.commuters",
    "b-zones": "bordenabe.zones",
    "b-regions": "bordenabe.regions",
    "b-spanners": "bordenabe.spanners",
    "b-taxis": "bordenabe.taxis",
    "c-attacks": "cai.attacks",
    "c-profiles": "cai.profiles",
    "field-audit": "field.audit",
}
"""Names, and the modules below whereish.studies whose ``STUDY`` they are."""


def study(name: str) -> Study:
    """The study of this name.

    Raises
    ------
    InvalidInput
        If there is none.
    """
    if name not in STUDIES:
        raise InvalidInput(f"the study must be one of {', '.join(STUDIES)}, or {ALL}")
    found: Study = import_module(f"whereish.studies.{STUDIES[name]}").STUDY
    if found.name != name:
        raise InvalidInput(f"the study {name} calls itself {found.name}")
    return found


def chosen(name: str) -> list[Study]:
    """The study of this name, those of a source (b, kp, eg, c, field), or all."""
    if name == ALL:
        return [study(each) for each in STUDIES]
    of_source = [each for each in STUDIES if each.startswith(f"{name}-")]
    return [study(each) for each in of_source or [name]]
