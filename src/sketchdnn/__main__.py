"""`python -m sketchdnn` is `sketchdnn`."""

from sketchdnn.cli import main

main()
