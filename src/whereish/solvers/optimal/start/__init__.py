"""Where the solvers of the optimal channel begin: channels, duals, and near places made one."""
