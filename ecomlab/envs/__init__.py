"""One file, one environment. The registry in `ecomlab.core` scans this folder."""
