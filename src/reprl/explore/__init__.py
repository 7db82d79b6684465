"""From an environment to tiers and data."""
