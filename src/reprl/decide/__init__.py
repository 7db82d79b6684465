"""From tiers and data to a policy."""
