"""The sweep: from a model and a board to the smallest arena that works, and where its bytes go."""
