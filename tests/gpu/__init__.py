"""Tests that need cupy and a device, real or emulated; they skip themselves where there is none."""
