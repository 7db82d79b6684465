"""Calibration: the measurements behind the "practical" preset. The sweep is data, the analysis only reads."""
