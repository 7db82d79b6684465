"""What a new user gets: the default accuracy on well-known environments."""
