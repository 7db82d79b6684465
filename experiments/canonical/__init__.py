"""The canonical learner measured: what it costs, whether it keeps ρ, and whether its rehearsal tells the truth."""
