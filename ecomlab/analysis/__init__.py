"""Results: tables loaded and checked, statistics over runs, plots."""
