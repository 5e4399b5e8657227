"""How fast and how large, beside a floor and a peer: one module per question, run with ``python -m``."""
