"""Records: what a run leaves behind. The only thing that reports read."""
