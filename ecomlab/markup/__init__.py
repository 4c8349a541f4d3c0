"""HTML of conversations, results and tables, the same in notebooks and in the viewer's page; it reads plain values."""
