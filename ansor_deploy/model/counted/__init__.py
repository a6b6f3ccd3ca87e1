"""Tensors of which a run decides how many elements count: as large as they can be, with numbers."""
