"""How a system learns: data on the device, one compiled step, and a run that survives being killed."""
