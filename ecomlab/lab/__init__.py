"""The notebook side: strict papermill runs, sweeps, progress, provenance, figures."""
