"""Autoregressive models of tokens: Vitruvion and SketchGen."""
