"""``python -m whereish`` is the command line."""

from whereish.interfaces.cli import main

main()
