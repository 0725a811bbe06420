"""Boards (what a board type is) and rigs (one board on somebody's desk)."""
