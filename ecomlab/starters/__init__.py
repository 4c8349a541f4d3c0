"""The tiny policies that ship, and how they are made."""
