"""Modules that stand in on a machine without a GPU for what is compiled for one. The folder may be on a Python path."""
