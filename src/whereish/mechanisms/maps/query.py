"""Answers to a query about a place, under a privacy map.

Koufogiannis and Pappas, Location-dependent Privacy, with a query q: U -> Y: what is
reported is an answer y (a district, a bracket of wealth), with probability

    P(y | u) = k_y·t[D(u, y)] / Z(u),

D(u, y) the shortest path from the cell of u to the nearest cell whose answer is y.
A distance to a set is 1-Lipschitz in the graph metric, so the promise is kept by the
same argument as for the query q(u) = u, edge by edge and in exact integers
(:mod:`whereish.solvers.eikonal.answers`).  The answer of a reported place is private too, as
post-processing, and right about as often; what is gained here is a law over the
answers alone, for sets of any form.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from whereish.arrays import FloatArray
from whereish.errors import InvalidInput
from whereish.mechanisms.maps.entries import EIKONAL_QUERY, check_claims
from whereish.mechanisms.maps.options import check_map, checked_neighbours, levels_in_use
from whereish.mechanisms.maps.query_file import query_entries, saved_query
from whereish.mechanisms.maps.table_file import recertified_table
from whereish.mechanisms.saved import Artefact, Loadable, save_artefact, saved_as
from whereish.privacy.guarantee import Basis, Guarantee
from whereish.privacy.maps.geodesic import MapGeodesic
from whereish.privacy.maps.privacy_map import PrivacyMap
from whereish.privacy.metric import Metric
from whereish.randomness import Randomness, secure
from whereish.sampling.table import draw_from_table
from whereish.solvers.eikonal.answers import law_on_answers
from whereish.solvers.eikonal.cells import check_resolution
from whereish.solvers.eikonal.certify import mean_cell_ratios
from whereish.solvers.tables.error import table_laws
from whereish.solvers.tables.law import TableLaw
from whereish.space.points import Points

__all__ = ["EikonalQuery", "Query"]

Query: TypeAlias = Callable[[FloatArray], ArrayLike] | ArrayLike
"""A function of the cells' centres (n, dimensions), or one answer per cell of the map."""


@saved_as(EIKONAL_QUERY)
@dataclass(frozen=True, eq=False)
class EikonalQuery(Loadable):
    """Reports answers of a public query, within the promise of a privacy map.

    Contract: keeps the least integral of eps along paths between cells, certified.

    Build one with :meth:`build` or with ``EikonalMechanism.build(map, query=...)``.

    Parameters
    ----------
    map
        What was asked for.
    answers
        The distinct answers, sorted; reports are among them.
    answer_of
        Index of the answer of each cell.
    law
        The certified law.
    neighbours, divided
        As for :class:`~whereish.mechanisms.maps.eikonal.EikonalMechanism`.

    Raises
    ------
    InvalidInput
        In `build`: if there is not one answer for each cell, or cells are too small.

    Examples
    --------
    >>> import whereish as wh
    >>> levels = wh.PrivacyMap([[0.001, 0.001, 0.002]], cell="500 m")
    >>> query = wh.EikonalQuery.build(levels, [["park", "park", "shop"]])
    >>> query.answers.tolist()
    ['park', 'shop']
    >>> str(query.report([[250, 250]])[0]) in ("park", "shop")
    True
    """

    map: PrivacyMap
    answers: NDArray[Any] = field(repr=False)
    answer_of: NDArray[np.intp] = field(repr=False)
    law: TableLaw = field(repr=False)
    neighbours: int = 16
    divided: float = 1.0

    @classmethod
    def build(
        cls,
        privacy_map: PrivacyMap,
        query: Query,
        *,
        neighbours: int = 16,
        divide_stencil: bool = False,
        progress: Callable[[int, float], None] | None = None,
    ) -> EikonalQuery:
        """Solve and certify; it always succeeds.

        Parameters
        ----------
        query
            One answer (number or text) per cell, in the map's shape; or a function that gives
            them from the centres of the cells.  It is public, like the map.
        """
        checked_neighbours(neighbours)
        check_map(privacy_map)
        answers, answer_of = np.unique(_answers(privacy_map, query), return_inverse=True)
        shape, sides = privacy_map.shape, privacy_map.sides
        levels, divided = levels_in_use(privacy_map, neighbours, divide_stencil)
        check_resolution(levels, sides)
        index = answer_of.ravel().astype(np.intp)
        law = law_on_answers(
            levels, sides, index.reshape(shape), neighbours=neighbours, progress=progress
        )
        return cls(privacy_map, answers, index, law, neighbours, divided)

    @cached_property
    def metric(self) -> Metric:
        """What is kept: the graph metric between the cells of two secrets."""
        base = MapGeodesic(self.map, self.neighbours)
        return base if self.divided == 1.0 else (1.0 / self.divided) * base

    @cached_property
    def guarantee(self) -> Guarantee:
        """The certified promise."""
        source = (
            "log-ratio over all neighbouring cells and answers is at most"
            f" {self.law.factor:.6f} of the promise"
        )
        keeps = Guarantee(self.metric, Basis.CERTIFIED, source, "exact: integer masses")
        return keeps.on(self.map.space)

    @property
    def factor(self) -> float:
        """The certified factor: at most this share of the promise is used; never above 1."""
        return self.law.factor

    @cached_property
    def lowered(self) -> FloatArray:
        """Mean of (weight in use)/(weight asked for) over the edges at each cell of the map."""
        return mean_cell_ratios(self.law.metric, self.law.promised) / self.divided

    @cached_property
    def matrix(self) -> FloatArray:
        """Row u, column y: the probability of answer y for a secret in cell u."""
        return self._probabilities(np.arange(self.answer_of.size))

    def distribution(self, place: ArrayLike) -> FloatArray:
        """Probabilities of all `answers` for one secret."""
        cells = self._cells(place)
        if len(cells) != 1:
            raise InvalidInput(f"distribution takes one place; got {len(cells)}")
        return np.asarray(self._probabilities(cells)[0])

    def report(self, secrets: Points | ArrayLike, *, rng: Randomness | None = None) -> NDArray[Any]:
        """One answer for each secret; secrets outside the map are taken for its closest cell.

        Each draw sums the masses of all answers, so its work does not depend on the draw.
        """
        source = secure(rng)
        cells = self._cells(secrets)
        return np.asarray(self.answers[draw_from_table(self.law, cells, source)])

    def accuracy(self, prior: ArrayLike | None = None) -> float:
        """Probability of the true answer; `prior` over the cells, uniform by default."""
        right = self.matrix[np.arange(self.answer_of.size), self.answer_of]
        return float(right @ self.map.normalised_prior(prior))

    def _repr_html_(self) -> str:
        return self.map._repr_html_() + self.guarantee._repr_html_()

    def save(self, path: str | Path) -> None:
        """Write map, answers, weights and certificate to one file (npz, no pickle)."""
        entries = query_entries(self, self.answers, self.answer_of, self.law)
        save_artefact(path, EIKONAL_QUERY, *entries)

    @classmethod
    def from_artefact(cls, saved: Artefact) -> Self:
        """The mechanism of a file that was read already, certified anew from its numbers."""
        mechanism = cls(*saved_query(saved))
        check_claims(saved, mechanism, mechanism.factor, "factor")
        return mechanism

    def recertify(self) -> float:
        """Compute sums and certificate again from the numbers alone; the factor found."""
        return recertified_table(self.law).factor

    def _probabilities(self, cells: NDArray[np.intp]) -> FloatArray:
        return table_laws(self.law, cells)

    def _cells(self, secrets: Points | ArrayLike) -> NDArray[np.intp]:
        return self.map.raster.locate(self.map.checked_places(secrets))


def _answers(privacy_map: PrivacyMap, query: Query) -> NDArray[Any]:
    """The answer of each cell, checked."""
    if callable(query):
        centres = privacy_map.raster.centres()
        query = query(centres[:, :1] if privacy_map.one_dimensional else centres)
    given = np.asarray(query)
    rows, cols = privacy_map.shape
    if given.size != rows * cols or given.shape not in (
        (rows, cols),
        (rows * cols,),
        (rows * cols, 1),
    ):
        raise InvalidInput(
            f"a query must give one answer per cell of the map, {rows} x {cols}; got shape"
            f" {given.shape}"
        )
    if given.dtype.kind not in "biufUS":
        raise InvalidInput(f"answers must be numbers or text; got {given.dtype}")
    if given.dtype.kind == "f" and not np.isfinite(given).all():
        raise InvalidInput("answers must be finite; give cells without an answer one of their own")
    return given
