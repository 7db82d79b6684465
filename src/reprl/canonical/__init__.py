"""The canonical rule f(ξ, M): gaps, candidates, choice; where to sample next."""
