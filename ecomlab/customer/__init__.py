"""The simulated customer: a ledger of slots, a rule kernel that decides, a grammar that words it."""
