"""f(ξ, M): which policy a world has, as pure functions of shared randomness and a model."""
