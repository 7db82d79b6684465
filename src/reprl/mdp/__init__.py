"""MDPs, policies and data."""
