"""Python imports this at its start, before anything else of a rank: see ``injection``."""

import injection  # noqa: F401
