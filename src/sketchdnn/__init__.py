"""Generate parametric CAD sketches by joint continuous-discrete diffusion."""
