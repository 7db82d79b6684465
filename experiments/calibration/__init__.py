"""Calibration: the measurements behind the practical constants of the rivals."""
