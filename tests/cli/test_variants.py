"""What ``--vary`` takes, and what it makes of a request."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.cli.main import main
from harness.cli.variants import parse_variants, varied
from harness.errors import UsageError
from harness.sweep.request import SweepRequest


def test_all_combinations_in_the_order_given() -> None:
    assert parse_variants(("kernels=reference,cmsis_nn", "cache=on,off")) == [
        (("kernels", "reference"), ("cache", "on")),
        (("kernels", "reference"), ("cache", "off")),
        (("kernels", "cmsis_nn"), ("cache", "on")),
        (("kernels", "cmsis_nn"), ("cache", "off")),
    ]


def test_nothing_varied_is_one_run() -> None:
    assert parse_variants(()) == [()]


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (("colour=red",), "is not KEY=VALUE"),
        (("kernels",), "is not KEY=VALUE"),
        (("kernels=xtensa",), "xtensa"),
        (("cache=on,maybe",), "maybe"),
        (("optimise=O2", "optimise=O3"), "twice"),
        (("arena-region=",), "is not KEY=VALUE"),
        (("arena-region=dtcm,",), "no value"),
    ],
)
def test_what_cannot_be_varied_is_said(texts: tuple[str, ...], message: str) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        parse_variants(texts)
    assert caught.value.remedy


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--cache", "off", "--vary", "cache=on,off"], "--cache is given, and --vary cache too"),
        (["--arena-region", "dtcm", "--vary", "arena-region=dtcm,sram1"], "--vary arena-region too"),
        (["--fill", "3", "--input", "x.npy"], "each say what the inputs are"),
        (["--seed", "1", "--fill", "3"], "each say what the inputs are"),
    ],
)
def test_what_is_said_twice_is_refused(
    arguments: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["sweep", "--board", "host", "--results", str(tmp_path), *arguments, "m.tflite"]) == 2
    assert message in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_variant_changes_its_choices_and_nothing_else() -> None:
    request = SweepRequest(Path("m.tflite"), "nucleo-f746zg", step_bytes=4)
    variant = (("kernels", "reference"), ("arena-region", "dtcm"), ("optimise", "O3"), ("cache", "off"))
    changed = varied(request, variant)

    assert (changed.kernels, changed.step_bytes, changed.variant) == ("reference", 4, variant)
    assert (changed.build.arena_region, changed.build.optimise, changed.build.caches) == ("dtcm", "O3", False)
    assert varied(request, ()) == request
