"""Environments, a folder each (a new one may be one file): `ecomlab.envs.registry` scans this folder."""
