"""When parameters move: one file per mode, its worker half and its server half together."""
