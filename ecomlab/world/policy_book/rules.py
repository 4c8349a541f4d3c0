"""What a policy book may rule on, as data: facts, rules, and the words of clauses and of questions about them.

Nothing here is computed. {} is where a value stands; numbers are drawn per episode by `ecomlab.world.policy_book.book`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ecomlab.values import MONEY, Kind, choice


@dataclass(frozen=True)
class Named:
    """A fact with a closed set of values: how a clause puts it, and the words of each value there."""

    condition: str
    words: Mapping[str, str]


@dataclass(frozen=True)
class Amount:
    """A fact that is a number: how a clause says "at least" and "less than", and the limits it may draw."""

    least: str
    below: str
    limits: range
    kind: Kind
    step: int = 1
    """What separates a value that just reaches a limit from the one that just does not."""


_PLAIN = Kind(str, r"\d+", int)

FACTS: Mapping[str, Named | Amount] = {
    "tier": Named(
        "the customer is {}",
        {
            "none": "not a member",
            "Silver": "a Silver member",
            "Gold": "a Gold member",
            "Onyx": "an Onyx member",
        },
    ),
    "payment": Named(
        "payment is by {}",
        {"card": "credit card", "gift card": "gift card", "transfer": "bank transfer", "invoice": "invoice"},
    ),
    "destination": Named(
        "the address is in {}",
        {
            name: name
            for name in ("Alaska", "Hawaii", "Guam", "Puerto Rico", "Texas", "Ohio", "Maine", "Oregon")
        },
    ),
    "channel": Named(
        "the order is placed {}",
        {"app": "in the app", "web": "on the website", "store": "in a store", "phone": "by phone"},
    ),
    "opened": Named("the box {}", {"opened": "has been opened", "sealed": "is still sealed"}),
    "gift": Named("the order is {}", {"gift": "a gift", "own": "for the customer's own use"}),
    "sale": Named(
        "the product is sold {}",
        {"clearance": "on clearance", "flash": "in a flash sale", "full": "at full price"},
    ),
    "reason": Named(
        "the reason is {}",
        {
            "defect": "a defect",
            "wrong": "the wrong item",
            "late": "a late delivery",
            "mind": "a change of mind",
        },
    ),
    "total": Amount(
        "the order comes to {} or more", "the order comes to less than {}", range(4_000, 30_001, 500), MONEY
    ),
    "age": Amount(
        "at least {} days have passed since delivery",
        "fewer than {} days have passed since delivery",
        range(6, 46),
        _PLAIN,
    ),
    "weight": Amount(
        "the parcel weighs {} kg or more", "the parcel weighs less than {} kg", range(5, 31), _PLAIN
    ),
    "items": Amount(
        "the order has {} items or more", "the order has fewer than {} items", range(4, 21), _PLAIN
    ),
}
"""What a clause's condition may be about, beside "type": which product it is."""
TYPE_CONDITION = "the product is one of our {}"

UNITS: Mapping[str, Kind] = {
    "days": Kind(lambda n: f"{n} days", r"\d+ days", lambda text: int(text[:-5])),
    "hours": Kind(lambda n: f"{n} hours", r"\d+ hours", lambda text: int(text[:-6])),
    "months": Kind(lambda n: f"{n} months", r"\d+ months", lambda text: int(text[:-7])),
    "points": Kind(lambda n: f"{n} points", r"\d+ points", lambda text: int(text[:-7])),
    "percent": Kind(
        lambda n: f"{n // 10}.{n % 10}%" if n % 10 else f"{n // 10}%",
        r"\d+(?:\.\d)?%",
        lambda text: round(10 * float(text[:-1])),
    ),
    "cents": MONEY,
}
"""Numeric answers are whole numbers of these units; "percent" counts tenths."""


@dataclass(frozen=True)
class Rule:
    """One thing that the book rules on. `values` are whole numbers of `unit`, or the words to choose from."""

    title: str
    unit: str
    """A name of UNITS; "yes" for yes or no; "name" for one of some names."""
    values: Sequence[int] | Sequence[str]
    facts: Sequence[str]
    """What its conditions may be about."""
    outcomes: Sequence[str]
    """How a clause says it; for yes and no, the pair of them."""
    questions: Sequence[str]
    """How a customer asks for it."""

    @property
    def numeric(self) -> bool:
        return self.unit in UNITS

    @property
    def kind(self) -> Kind:
        """How its value is written in a clause."""
        return UNITS[self.unit] if self.numeric else choice({str(value): str(value) for value in self.values})


SHIP = ("type", "total", "tier", "destination", "weight", "items", "payment", "channel", "gift")
BACK = ("type", "total", "tier", "opened", "age", "reason", "payment", "channel", "sale", "gift")
BUY = ("type", "total", "tier", "payment", "channel", "sale", "items", "gift")
KEEP = ("type", "total", "tier", "payment", "channel", "sale", "age", "gift")
CLUB = ("total", "tier", "payment", "channel", "items", "gift")
YES = ("yes", "no")
CARRIERS = ("Swiftwing", "Bluecrate", "Northline", "Parcelhare", "Roverpost")

WINDOW = "return window"
"""The rule whose clauses are the terms of `terms`: a section per department, one clause each."""

RULES: Mapping[str, Rule] = {
    WINDOW: Rule(
        "Return window: {}",
        "days",
        range(200),
        ("type", "tier", "opened", "payment", "channel", "gift"),
        (
            "they can be sent back within {} of delivery",
            "the last day to send them back is {} after delivery",
        ),
        (
            "How many days after delivery can it be returned?",
            "How long after delivery can I return it?",
            "Within how many days of delivery can I return this product?",
        ),
    ),
    "standard cost": Rule(
        "Standard shipping: cost",
        "cents",
        range(299, 1_500, 50),
        SHIP,
        ("standard shipping costs {}", "the charge for standard shipping is {}"),
        (
            "How much does standard shipping cost?",
            "What do I pay for standard shipping?",
            "What would standard shipping cost me here?",
        ),
    ),
    "express cost": Rule(
        "Express shipping: cost",
        "cents",
        range(899, 3_600, 50),
        SHIP,
        ("express shipping costs {}", "the charge for express shipping is {}"),
        (
            "How much does express shipping cost?",
            "What do I pay for express shipping?",
            "What would express shipping cost me here?",
        ),
    ),
    "same-day cost": Rule(
        "Same-day shipping: cost",
        "cents",
        range(1_299, 4_900, 50),
        SHIP,
        ("same-day shipping costs {}", "the charge for same-day shipping is {}"),
        (
            "How much does same-day shipping cost?",
            "What do I pay for same-day shipping?",
            "What would same-day shipping cost me?",
        ),
    ),
    "standard time": Rule(
        "Standard shipping: time",
        "days",
        range(3, 31),
        SHIP,
        ("standard shipping takes {}", "a standard parcel arrives after {}"),
        (
            "How many days does standard shipping take?",
            "How long does standard shipping take?",
            "How much time does standard shipping need?",
        ),
    ),
    "express time": Rule(
        "Express shipping: time",
        "hours",
        range(10, 97),
        SHIP,
        ("express shipping takes {}", "an express parcel arrives after {}"),
        (
            "How many hours does express shipping take?",
            "How long does express shipping take?",
            "How much time does express shipping need?",
        ),
    ),
    "insurance": Rule(
        "Shipping insurance: cost",
        "cents",
        range(149, 1_900, 50),
        SHIP,
        ("shipping insurance costs {}", "insurance for the parcel costs {}"),
        (
            "What does insurance for the parcel cost?",
            "How much is the shipping insurance?",
            "How much do you charge for insurance of the parcel?",
        ),
    ),
    "signature": Rule(
        "Signature on delivery",
        "yes",
        YES,
        SHIP,
        ("a signature is required on delivery", "no signature is required on delivery"),
        (
            "Do I have to sign for the delivery?",
            "Does somebody have to give a signature on delivery?",
            "Is a signature required on delivery?",
        ),
    ),
    "carrier": Rule(
        "Carrier of a delivery",
        "name",
        CARRIERS,
        SHIP,
        ("the carrier of the delivery is {}", "delivery is by {}"),
        (
            "Which carrier makes the delivery?",
            "Who is the carrier for my delivery?",
            "What carrier do you use for the delivery?",
        ),
    ),
    "redelivery": Rule(
        "Second delivery attempt: cost",
        "cents",
        range(199, 1_600, 50),
        SHIP,
        ("a second delivery attempt costs {}", "the fee for a second delivery attempt is {}"),
        (
            "If nobody is home, what does a second delivery attempt cost?",
            "What is the fee for a second delivery attempt?",
            "How much is a second attempt at delivery?",
        ),
    ),
    "address change": Rule(
        "Change of address: cost",
        "cents",
        range(99, 1_300, 50),
        SHIP,
        ("a change of address costs {}", "the fee for a change of address is {}"),
        (
            "What does it cost to change the address?",
            "How much is a change of address?",
            "What is the fee for a change of the delivery address?",
        ),
    ),
    "pick-up time": Rule(
        "Parcels at a pick-up point",
        "days",
        range(4, 41),
        SHIP,
        ("the pick-up point keeps a parcel for {}", "a parcel stays at the pick-up point for {}"),
        (
            "How many days does the pick-up point keep my parcel?",
            "How long does my parcel stay at the pick-up point?",
            "For how many days will a pick-up point hold a parcel?",
        ),
    ),
    "loss report": Rule(
        "Reporting a lost parcel",
        "days",
        range(5, 46),
        SHIP,
        ("a lost parcel must be reported within {}", "the time to report a lost parcel is {}"),
        (
            "If the parcel is lost, within how many days must I report it?",
            "How many days do I have to report a lost parcel?",
            "How long can I wait before I report a lost parcel?",
        ),
    ),
    "gift wrap": Rule(
        "Gift wrapping: cost",
        "cents",
        range(149, 1_200, 50),
        BUY,
        ("gift wrapping costs {}", "the charge for gift wrapping is {}"),
        (
            "How much is gift wrapping?",
            "What does gift wrapping cost?",
            "What do you charge for gift wrapping?",
        ),
    ),
    "restocking": Rule(
        "Returns: restocking fee",
        "percent",
        range(50, 355, 5),
        BACK,
        ("the restocking fee is {} of the price", "{} of the price is kept as a restocking fee"),
        (
            "What percentage is the restocking fee?",
            "How high is the restocking fee in percent?",
            "What restocking fee do you take, in percent?",
        ),
    ),
    "label": Rule(
        "Returns: shipping label",
        "cents",
        range(199, 1_900, 50),
        BACK,
        ("the shipping label for a return costs {}", "{} is charged for the shipping label of a return"),
        (
            "What does the shipping label for a return cost?",
            "How much do you charge for a return shipping label?",
            "What do I pay for the label to return it?",
        ),
    ),
    "return carrier": Rule(
        "Returns: carrier",
        "name",
        CARRIERS,
        BACK,
        ("a return goes with the carrier {}", "the carrier for a return is {}"),
        (
            "Which carrier takes the return?",
            "With which carrier do I send the return?",
            "What carrier do you use for returns?",
        ),
    ),
    "collection": Rule(
        "Returns: collection at home",
        "yes",
        YES,
        BACK,
        ("the return is collected at home", "the return is not collected at home"),
        (
            "Do you collect the return at my home?",
            "Can the return be collected at home?",
            "Will somebody come to my home to collect the return?",
        ),
    ),
    "box": Rule(
        "Returns: original packaging",
        "yes",
        YES,
        BACK,
        ("a return needs the original packaging", "a return does not need the original packaging"),
        (
            "Does the return need the original packaging?",
            "Do I need the original packaging for a return?",
            "Is the original packaging needed to return it?",
        ),
    ),
    "receipt": Rule(
        "Returns: receipt",
        "yes",
        YES,
        BACK,
        ("a return needs the receipt", "a return does not need the receipt"),
        (
            "Do I need the receipt for a return?",
            "Does a return need the receipt?",
            "Is the receipt needed to return it?",
        ),
    ),
    "refund time": Rule(
        "Refunds: time",
        "days",
        range(2, 41),
        BACK,
        ("a refund takes {}", "the refund is paid after {}"),
        (
            "How many days does a refund take?",
            "How long does the refund take?",
            "After how many days is the refund paid?",
        ),
    ),
    "refund form": Rule(
        "Refunds: form",
        "name",
        ("store credit", "gift card", "bank transfer", "check"),
        BACK,
        ("the form of the refund is {}", "the refund comes as {}"),
        (
            "In what form do I get the refund?",
            "What form does the refund come in: store credit, gift card, bank transfer or check?",
            "Does the refund come as store credit, gift card, bank transfer or check?",
        ),
    ),
    "exchange time": Rule(
        "Exchanges: time",
        "days",
        range(7, 100),
        BACK,
        ("an exchange is possible within {} of delivery", "the time for an exchange is {} from delivery"),
        (
            "Within how many days is an exchange possible?",
            "How long after delivery is an exchange possible?",
            "How many days do I have for an exchange?",
        ),
    ),
    "exchange fee": Rule(
        "Exchanges: fee",
        "cents",
        range(199, 2_200, 50),
        BACK,
        ("the fee for an exchange is {}", "an exchange costs {}"),
        (
            "What does an exchange cost?",
            "How much is the fee for an exchange?",
            "What fee is there for an exchange?",
        ),
    ),
    "damage report": Rule(
        "Reporting damage",
        "hours",
        range(12, 169),
        BACK,
        ("damage must be reported within {} of delivery", "the time to report damage is {} from delivery"),
        (
            "Within how many hours must damage be reported?",
            "How many hours do I have to report damage?",
            "How many hours after delivery can I report damage?",
        ),
    ),
    "parts claim": Rule(
        "Reporting missing parts",
        "days",
        range(3, 61),
        BACK,
        ("missing parts must be reported within {} of delivery", "the time to report missing parts is {}"),
        (
            "Within how many days must missing parts be reported?",
            "How many days do I have to report missing parts?",
            "If parts are missing, how many days do I have to report it?",
        ),
    ),
    "cancel time": Rule(
        "Cancelling an order: time",
        "hours",
        range(2, 73),
        BUY,
        ("an order can be cancelled within {}", "the time to cancel an order is {}"),
        (
            "Within how many hours can the order be cancelled?",
            "How many hours do I have to cancel an order?",
            "For how many hours can I cancel the order?",
        ),
    ),
    "cancel fee": Rule(
        "Cancelling an order: fee",
        "percent",
        range(10, 255, 5),
        BUY,
        ("the fee to cancel an order is {} of its price", "to cancel an order costs {} of its price"),
        (
            "What percentage is the fee to cancel an order?",
            "How high is the fee to cancel the order, in percent?",
            "What fee do you take if I cancel the order, in percent?",
        ),
    ),
    "match time": Rule(
        "Price match: time",
        "days",
        range(3, 61),
        KEEP,
        ("a price match can be claimed within {}", "the time to claim a price match is {}"),
        (
            "Within how many days can I claim a price match?",
            "How many days do I have to claim a price match?",
            "For how long can a price match be claimed?",
        ),
    ),
    "match share": Rule(
        "Price match: share",
        "percent",
        range(300, 1_000, 5),
        KEEP,
        (
            "a price match pays back {} of the difference",
            "{} of the difference is paid back in a price match",
        ),
        (
            "What share of the difference does a price match pay back?",
            "How much of the difference is paid back in a price match, in percent?",
            "With a price match, what percentage of the difference is paid back?",
        ),
    ),
    "match allowed": Rule(
        "Price match: where it is possible",
        "yes",
        YES,
        KEEP,
        ("a price match is possible", "no price match is possible"),
        ("Is a price match possible?", "Would a price match be possible here?", "Can I get a price match?"),
    ),
    "price drop": Rule(
        "Price drop after purchase",
        "days",
        range(3, 61),
        KEEP,
        (
            "a price drop is refunded within {} of purchase",
            "after a price drop one has {} to claim the difference",
        ),
        (
            "If there is a price drop, for how many days is it refunded?",
            "For how many days after purchase is a price drop refunded?",
            "How long after purchase do you refund a price drop?",
        ),
    ),
    "warranty length": Rule(
        "Warranty: length",
        "months",
        range(6, 85),
        KEEP,
        ("the warranty lasts {}", "the length of the warranty is {}"),
        (
            "How many months does the warranty last?",
            "How long does the warranty last?",
            "What is the length of the warranty?",
        ),
    ),
    "warranty fee": Rule(
        "Warranty: repair fee",
        "cents",
        range(499, 4_900, 50),
        KEEP,
        ("the fee for a warranty repair is {}", "a repair under warranty costs {}"),
        (
            "What does a repair under warranty cost?",
            "What is the fee for a warranty repair?",
            "How much is a warranty repair?",
        ),
    ),
    "warranty time": Rule(
        "Warranty: repair time",
        "days",
        range(4, 61),
        KEEP,
        ("a warranty repair takes {}", "a repair under warranty is done after {}"),
        (
            "How many days does a warranty repair take?",
            "How long does a repair under warranty take?",
            "After how many days is a warranty repair done?",
        ),
    ),
    "extension": Rule(
        "Extended warranty: price",
        "percent",
        range(40, 305, 5),
        KEEP,
        (
            "an extended warranty costs {} of the price",
            "the price of an extended warranty is {} of the product's",
        ),
        (
            "What percentage of the price does an extended warranty cost?",
            "What does the extended warranty cost, in percent?",
            "How many percent of the price is an extended warranty?",
        ),
    ),
    "old device": Rule(
        "Taking away the old one: fee",
        "cents",
        range(599, 5_900, 50),
        BUY,
        ("taking away the old one costs {}", "the fee for taking away the old one is {}"),
        (
            "What does taking away the old one cost?",
            "How much is the fee for taking away my old one?",
            "What do you charge for taking the old one away?",
        ),
    ),
    "set-up": Rule(
        "Set-up at home: fee",
        "cents",
        range(999, 8_900, 50),
        BUY,
        ("set-up at home costs {}", "the fee for set-up at home is {}"),
        (
            "What does set-up at home cost?",
            "How much is set-up at home?",
            "What is the fee for set-up at my home?",
        ),
    ),
    "deposit": Rule(
        "Pre-orders: deposit",
        "percent",
        range(50, 505, 5),
        BUY,
        ("the deposit for a pre-order is {} of the price", "a pre-order needs a deposit of {} of the price"),
        (
            "How high is the deposit for a pre-order, in percent?",
            "What deposit does a pre-order need, in percent?",
            "What percentage is the deposit if I pre-order?",
        ),
    ),
    "instalments": Rule(
        "Instalments: surcharge",
        "percent",
        range(10, 205, 5),
        BUY,
        ("the surcharge for instalments is {}", "paying in instalments adds {}"),
        (
            "What surcharge is there for paying in instalments?",
            "What percentage does paying in instalments add?",
            "What percentage is the surcharge for instalments?",
        ),
    ),
    "student discount": Rule(
        "Student discount",
        "percent",
        range(30, 355, 5),
        BUY,
        ("the student discount is {}", "students get a discount of {}"),
        (
            "How high is the student discount?",
            "What discount do students get?",
            "I'm a student, how much is the student discount?",
        ),
    ),
    "bulk discount": Rule(
        "Bulk discount",
        "percent",
        range(30, 355, 5),
        BUY,
        ("the bulk discount is {}", "bulk orders get a discount of {}"),
        (
            "How high is the bulk discount?",
            "What discount do bulk orders get?",
            "How much is the bulk discount?",
        ),
    ),
    "coupons": Rule(
        "Combining coupons",
        "yes",
        YES,
        BUY,
        ("coupons can be combined", "coupons cannot be combined"),
        ("Can I combine coupons?", "Can coupons be combined?", "Is it possible to combine two coupons?"),
    ),
    "points rate": Rule(
        "Points: per dollar",
        "points",
        range(2, 61),
        CLUB,
        ("every dollar earns {}", "for each dollar one earns {}"),
        (
            "How many points does every dollar earn?",
            "How many points do I earn for each dollar?",
            "What do I earn in points per dollar?",
        ),
    ),
    "review points": Rule(
        "Points: for a review",
        "points",
        range(20, 405, 5),
        CLUB,
        ("a review earns {}", "for a review one earns {}"),
        (
            "How many points does a review earn?",
            "How many points do I earn for a review?",
            "What does writing a review earn me in points?",
        ),
    ),
    "referral points": Rule(
        "Points: for a referral",
        "points",
        range(100, 2_005, 25),
        CLUB,
        ("a referral earns {}", "for a referral one earns {}"),
        (
            "How many points does a referral earn?",
            "How many points do I earn for a referral?",
            "If I make a referral, what do I earn in points?",
        ),
    ),
    "points expiry": Rule(
        "Points: expiry",
        "months",
        range(3, 61),
        CLUB,
        ("points expire after {}", "the points of an order expire after {}"),
        (
            "After how many months do points expire?",
            "When do my points expire?",
            "How many months until the points expire?",
        ),
    ),
    "gift card expiry": Rule(
        "Gift cards: expiry",
        "months",
        range(6, 85),
        CLUB,
        ("a gift card expires after {}", "gift cards expire after {}"),
        (
            "After how many months does a gift card expire?",
            "When do gift cards expire?",
            "How many months until a gift card expires?",
        ),
    ),
    "gift card start": Rule(
        "Gift cards: activation",
        "hours",
        range(2, 73),
        CLUB,
        ("activation of a gift card takes {}", "a gift card is active after {}"),
        (
            "How many hours does the activation of a gift card take?",
            "After how many hours is a gift card active?",
            "How long does it take until a gift card is active?",
        ),
    ),
    "gift card fee": Rule(
        "Gift cards: replacement fee",
        "cents",
        range(199, 1_900, 50),
        CLUB,
        ("replacement of a lost gift card costs {}", "the fee for replacement of a gift card is {}"),
        (
            "What does it cost to replace a lost gift card?",
            "How much is the fee for replacement of a gift card?",
            "I lost a gift card, what is the replacement fee?",
        ),
    ),
}

NOT_RETURNABLE = "its products cannot be returned"
"""What a window of 0 days says."""
GENERAL = {
    "last": ("As a rule, {}.", "Normally, {}.", "In general, {}."),
    "first": ("Otherwise, {}.", "In all other cases, {}.", "If none of these applies, {}."),
}
"""The clause without a condition, by which of several clauses decides: listed first where the last one decides."""
SPECIAL = ("If {if}, {then}.", "Where {if}, {then}.", "When {if}, {then}.", "Provided that {if}, {then}.")
PRECEDENCE = {
    "last": (
        "Where several clauses apply, the last one listed decides.",
        "If more than one clause applies, the one listed last counts.",
        "A clause overrides those listed before it.",
    ),
    "first": (
        "Where several clauses apply, the first one listed decides.",
        "If more than one clause applies, the one listed first counts.",
        "A clause overrides those listed after it.",
    ),
}
