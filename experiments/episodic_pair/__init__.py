"""A proven pair by episodes: ρ before the first episode, the loss from the runs' own data."""
