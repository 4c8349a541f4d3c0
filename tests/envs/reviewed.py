"""REVIEWED: recommendations for customers who may want a number of reviews, a slot that the package does not have."""

from pathlib import Path

import ecomlab.envs.discovery.env as discovery
from ecomlab.customer.templates import Phrases
from ecomlab.slots import SlotType
from ecomlab.values import counted
from ecomlab.world.tools.catalog import search_tool

REVIEWS = SlotType(
    "reviews",
    "product",
    ">=",
    counted("review"),
    step=5,
    moves=(-20, -10, 10, 20, 50),
    others=(-10, 10),
    column="reviews",
    shown="reviews",
    filter="reviews_min",
    filter_help="Number of reviews.",
    fault="has {has}, wanted at least {wanted}",
    mark="NUMBER",
    forms=("with at least {}", "with {} or more", "reviewed by many, with no fewer than {}"),
    asked=("reviews", "review"),
    questions=("How many reviews should it have?", "Is there a number of reviews it needs?"),
)


class Reviewed(discovery.Discovery):
    id, version = "REVIEWED", 1
    tools = (search_tool(REVIEWS), *discovery.Discovery.tools[1:])
    phrases = Phrases.load(Path(discovery.__file__).with_name("phrases.toml"), REVIEWS)
