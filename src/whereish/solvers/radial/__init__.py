"""Log-linear radials: their ratio, their loss, the optimum."""
