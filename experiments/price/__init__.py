"""The price of replicability: samples of the default learner over samples of greedy planning."""
