"""The link: bytes to and from a device. Owner of ``import serial``."""
