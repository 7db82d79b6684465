"""The world: MDPs, policies, data, and the two ways to draw samples."""
