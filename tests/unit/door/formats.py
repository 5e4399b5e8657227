"""The formats of files that a test of the door goes through."""

import importlib.util

import pytest

SAFETENSORS = pytest.param("safetensors", marks=pytest.mark.skipif(
    importlib.util.find_spec("safetensors") is None,
    reason="safetensors is not installed: pip install '.[export]'"))
