"""Measurements. Ratios within one run are what counts: absolute times are noise on a shared machine."""
