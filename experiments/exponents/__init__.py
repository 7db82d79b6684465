"""How the samples of the paper's learner by episodes grow with S, A, H, 1/ε and 1/ρ, the shared key integrated out."""
