"""Lenient readers of what a person writes as an answer: amounts, days, names, yes and no, clause ids."""
