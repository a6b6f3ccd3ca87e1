"""Tensors with a size that a run decides: they have room for the most, and numbers that count."""
