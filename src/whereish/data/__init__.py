"""Public data that is read: grids of densities, visits, commuters, sites."""
