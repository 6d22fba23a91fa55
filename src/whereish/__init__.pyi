"""The public names, for type checkers; whereish/__init__.py loads them lazily."""

from whereish import audit as audit
from whereish import queries as queries
from whereish.audit.adversary import adversary_error as adversary_error
from whereish.audit.utility import quality_loss as quality_loss
from whereish.errors import WhereishError as WhereishError
from whereish.mechanisms.base import Mechanism as Mechanism
from whereish.mechanisms.channel import Channel as Channel
from whereish.mechanisms.cloaking import cloaking_channel as cloaking_channel
from whereish.mechanisms.cloaking import identity_channel as identity_channel
from whereish.mechanisms.cloaking import uniform_channel as uniform_channel
from whereish.mechanisms.cube_geometric import CubeGeometric as CubeGeometric
from whereish.mechanisms.exponential import exponential_channel as exponential_channel
from whereish.mechanisms.geometric import TruncatedGeometric as TruncatedGeometric
from whereish.mechanisms.geometric import TwoSidedGeometric as TwoSidedGeometric
from whereish.mechanisms.globe_laplace import GlobeLaplace as GlobeLaplace
from whereish.mechanisms.laplace_channel import laplace_channel as laplace_channel
from whereish.mechanisms.manhattan_laplace import Laplace1D as Laplace1D
from whereish.mechanisms.manhattan_laplace import ManhattanLaplace as ManhattanLaplace
from whereish.mechanisms.opt_priv import opt_priv_channel as opt_priv_channel
from whereish.mechanisms.optimal import OptimalChannel as OptimalChannel
from whereish.mechanisms.optimal import optimal_channel as optimal_channel
from whereish.mechanisms.planar_laplace import PlanarLaplace as PlanarLaplace
from whereish.mechanisms.planar_laplace import corrected_epsilon as corrected_epsilon
from whereish.mechanisms.remap import BayesianRemap as BayesianRemap
from whereish.mechanisms.remap import bayesian_remap as bayesian_remap
from whereish.mechanisms.remap import nearest_remap as nearest_remap
from whereish.privacy import Basis as Basis
from whereish.privacy import Chebyshev as Chebyshev
from whereish.privacy import Euclidean as Euclidean
from whereish.privacy import Finite as Finite
from whereish.privacy import Geodesic as Geodesic
from whereish.privacy import GreatCircle as GreatCircle
from whereish.privacy import Guarantee as Guarantee
from whereish.privacy import Manhattan as Manhattan
from whereish.privacy import Metric as Metric
from whereish.privacy import Records as Records
from whereish.privacy import TupleMax as TupleMax
from whereish.privacy import TupleSum as TupleSum
from whereish.publish.report import perturb as perturb
from whereish.publish.sanitize import sanitize as sanitize
from whereish.queries import answer as answer
from whereish.randomness import SecureRandomness as SecureRandomness
from whereish.randomness import SeededRandomness as SeededRandomness
from whereish.space import Box as Box
from whereish.space import Line as Line
from whereish.space import Plane as Plane
from whereish.space import Points as Points
from whereish.space import Raster as Raster
from whereish.space import Sites as Sites
from whereish.space import Sphere as Sphere
from whereish.space import Values as Values
from whereish.units import Epsilon as Epsilon
from whereish.units import Length as Length

__version__: str
__all__: list[str]
