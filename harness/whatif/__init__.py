"""What engineers ask of a plan, and the answers."""
