"""Lenient readers of answers as a person writes them: amounts, days, names, yes and no, clause ids."""
