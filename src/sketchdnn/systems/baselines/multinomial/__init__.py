"""SketchDNN (Cat.): multinomial diffusion of labels (Hoogeboom et al. 2021)."""
