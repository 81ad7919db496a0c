"""Run the command line with `python -m dpppsynth`."""

from dpppsynth.cli import main

main()
