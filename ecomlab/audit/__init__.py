"""The laws measured: certificate, attackers, leaks, benchmarks."""
