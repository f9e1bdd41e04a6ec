"""The systems that SketchDNN is compared with, one subpackage each: network, process, likelihood, system."""
