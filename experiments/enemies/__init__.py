"""Worlds that were made to break a rehearsed promise: exact and near ties, rare events, knife edges."""
