"""Bridges to other ecosystems, one file each; a bridge is imported where its extra is installed, never by ecomlab."""
