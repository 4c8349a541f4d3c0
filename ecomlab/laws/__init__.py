"""The audit: laws, their certificate and contract, attackers, leaks and benchmarks."""
