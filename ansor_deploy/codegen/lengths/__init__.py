"""End loops of kernels early where only part of their tensors counts, as a run decides.

    for i in 512: for j in 256: y[i, j] = f(x[i, j])        n rows of y count
    -->
    for i in 512: if i < n: for j in 256: y[i, j] = f(x[i, j])

How much counts is known for a model's results, and where a select checks whether an index is below
a number (`asked.py`). From there the kernels are walked from the last to the first: for each, the
part of its inputs that it needs follows from the part of its outputs that is needed (`needs.py`).
Loops skip what nothing needs (`cut.py`); inside a loop that has to go on, inner loops skip it.
"""
