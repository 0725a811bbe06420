"""Memory planners to compare: where each buffer of the head could lie, by several rules."""
