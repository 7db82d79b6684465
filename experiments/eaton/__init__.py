"""Figure 2 of Eaton et al. (2023) again: how many calls rPVI needs before runs output one value function."""
