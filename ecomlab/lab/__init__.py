"""Work in notebooks: strict papermill runs, sweeps, progress, provenance, figures."""
