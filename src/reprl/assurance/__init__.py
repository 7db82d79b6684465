"""Assurance: why two runs will agree; rehearsal (bootstrap) and certificates (concentration)."""
