"""``python -m whereish.interfaces.cli``."""

from whereish.interfaces.cli import main

main()
