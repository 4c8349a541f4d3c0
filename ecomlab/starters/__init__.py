"""Starters: the shipped laptop policies, and how they are made. Importing this package registers them."""

from ecomlab.models.load import register
from ecomlab.starters.policy import STARTERS

register(STARTERS)
