"""`python -m midwatch`: the same as the command `midwatch`."""

from midwatch.agents.cli import main

main()
