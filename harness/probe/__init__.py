"""The probe: what can be done to a board from outside. Owner of ``import pyocd``."""
