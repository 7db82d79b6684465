"""Quiet worlds: outcomes, starts and rewards so rare that small samples do not show them."""
