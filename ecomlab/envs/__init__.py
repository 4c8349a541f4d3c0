"""One file, one environment. The registry in `ecomlab.envs.base` scans this folder."""
