"""wheelfix: what the dynamic loader will do with a compiled wheel, what is wrong, and its repair."""

__version__ = "0.1.0"
