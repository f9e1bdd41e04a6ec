"""Latent diffusion: a VAE of sketches and a diffusion transformer on its latents."""
