"""Run the command line with `python -m dpppsynth.cli`."""

from dpppsynth.cli import main

main()
