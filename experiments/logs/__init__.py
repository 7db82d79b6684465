"""Two disjoint halves of one log: who comes to the same policy from both?"""
