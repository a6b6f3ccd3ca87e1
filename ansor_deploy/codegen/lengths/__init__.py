"""Kernels of tensors of which a run decides how much counts: their loops end where that ends.

    for i in 512: for j in 256: y[i, j] = f(x[i, j])        n rows of y count
    -->
    for i in 512: if i < n: for j in 256: y[i, j] = f(x[i, j])

What counts is known of a model's results, and where a choice asks whether an index is below a
number (`asked.py`). From there, what each kernel needs of what it reads is followed backwards, from
the last to the first (`needs.py`), and what nothing needs is left out of its loops (`cut.py`).
"""
