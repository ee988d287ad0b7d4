"""Every performance bar beside its floor, measured in one run: `make bench`."""
