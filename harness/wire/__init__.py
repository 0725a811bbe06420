"""The wire: frame format and messages, one description, from which the C header is rendered too."""
