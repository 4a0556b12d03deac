"""Measured studies, one module per question: sampled with a seed, computed by the engine.

Each keeps what theory predicts beside what came out, and knows the plain PyTorch that repeats it.
"""
