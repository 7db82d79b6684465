"""Gymnasium environments: as tables where they publish their dynamics, as black boxes where they do not, and back."""
