"""Head to head: the samples that each learner needs for disagreement ρ and mean suboptimality ε, and how they grow."""
