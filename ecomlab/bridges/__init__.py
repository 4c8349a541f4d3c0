"""Bridges to other frameworks, one file each; users import a bridge whose extra is installed, ecomlab imports none."""
