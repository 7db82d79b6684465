"""The two policies of the front page, what they cost, and pictures of the catalogue's worlds."""
