"""Starters: how the shipped laptop policies are made and read. Importing this package registers them."""

from ecomlab.models.load import register
from ecomlab.starters.policy import STARTERS

register(STARTERS)
