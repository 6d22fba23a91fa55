"""Privacy maps eps(u): levels per cell, their stencil, their geodesic metric."""
