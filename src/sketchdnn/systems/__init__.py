"""Whole systems: a network, the process it reverses and how it is trained, behind one small protocol."""
