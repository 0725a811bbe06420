"""Qualification: what a board has to show before its numbers are trusted."""
