"""What data prove about the world: intervals for values, gaps, spreads and visits, and whether they fix f(ξ, M)."""
