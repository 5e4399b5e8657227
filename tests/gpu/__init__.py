"""Tests that need a GPU, or an emulation of one: skipped where there is neither."""
