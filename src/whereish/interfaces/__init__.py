"""How people reach whereish: the command line and the demo."""
