"""The server: generation, completion, constraints and conversion over HTTP, and the page of the studio."""
