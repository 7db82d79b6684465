"""The paper's algorithm as a whole, at scaled sizes: how often runs differ, what tiers do, how samples grow with S."""
