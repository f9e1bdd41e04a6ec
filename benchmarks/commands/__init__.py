"""The command line of the benchmarks, one module per group of commands."""
