"""Samples of files: what `qxc calib-data` reads."""
