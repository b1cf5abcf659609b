"""Hostile bytes: inputs made to break each part that reads what it didn't write, and checks that none does.

    python -m tests.fuzz.run --inputs 1000000

The same batches run, smaller, under Hypothesis in test_fuzz.py.
"""
