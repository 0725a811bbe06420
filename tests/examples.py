"""How many examples the property tests try. Each run of the tests tries the same ones, so that a red run says something
of the change at hand. New ones are looked for on purpose, and what they find becomes a test of its own:
``HARNESS_EXPLORE=20 pytest`` tries twenty times as many, others each time; ``--hypothesis-seed=N`` repeats a run.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

EXPLORE = max(1, int(os.environ.get("HARNESS_EXPLORE", "1")))


def register() -> None:
    """As hypothesis' profile for all tests; how long an example takes is the machine's business, and fails none."""
    settings.register_profile(
        "harness",
        max_examples=100 * EXPLORE,
        derandomize=EXPLORE == 1,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
    )
    settings.load_profile("harness")


def examples(count: int) -> settings:
    """For a test that tries another number of examples than 100."""
    return settings(max_examples=count * EXPLORE)


def seeds(count: int) -> range:
    """For tests that are parametrised with seeds of their own generator."""
    return range(count * EXPLORE)
