"""Same choice from similar data: the couplings that every guarantee rests on."""
