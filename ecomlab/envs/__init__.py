"""Environments, one per file: `ecomlab.envs.registry` scans this folder."""
