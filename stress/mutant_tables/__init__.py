"""All mutants, by the layer that they change."""

from __future__ import annotations

from stress.mutant import Mutant
from stress.mutant_tables import (
    between,
    certificates,
    globe,
    laws,
    lbs,
    metrics,
    optimal,
    planes,
    samplers,
    theory,
)

__all__ = ["MUTANTS"]

MUTANTS: tuple[Mutant, ...] = (
    *certificates.MUTANTS,
    *laws.MUTANTS,
    *samplers.MUTANTS,
    *globe.MUTANTS,
    *planes.MUTANTS,
    *metrics.MUTANTS,
    *lbs.MUTANTS,
    *between.MUTANTS,
    *theory.MUTANTS,
    *optimal.MUTANTS,
)
