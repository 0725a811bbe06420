"""The lab: suites, baselines, scheduling over several rigs, history."""
