"""`python -m benchmarks NAME`: speed, quality, figures and the tables of the paper."""

from __future__ import annotations

from benchmarks.commands.app import main

main()
