"""datamask: choose a high-quality, diverse subset of a pre-training corpus by mask learning (arXiv 2512.24265)."""

__version__ = "0.1.0"
