"""From tables to figures: load and check, statistics over runs, plots."""
