"""The parts of the paper by themselves: how decisions of many states grow with S, A, ε and ρ; phantom independence."""
