"""The default rule for tables: the soft tolerance rule f(ξ, M)."""
