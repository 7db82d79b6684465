"""Lower bounds: how many samples our solvers need for disagreement ρ at accuracy ε, next to n/(ρ²ε²)."""
