"""Where results come from: one protocol, `around(lon, lat, radius_m)`, for stores and services."""
