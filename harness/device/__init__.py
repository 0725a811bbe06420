"""The device: client of the wire protocol; the verdict on what an outcome means."""
