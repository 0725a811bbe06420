"""The arena's picture: SVG, PNG and Unicode blocks say the same, and no name can break them."""

from __future__ import annotations

import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from harness.errors import ExitCode, MissingDependencyError, UsageError
from harness.report.arena_picture import COLOURS, PERSISTENT_COLOUR, ArenaPicture, Block, Kind, draw
from harness.report.arena_terminal import picture_lines
from harness.report.drawing import to_png, to_svg, write_drawing

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = 'x"><script>alert(1)</script>\x1b[31m\n\u202e$\\alpha$\ud800'


def picture(label: str = "t1") -> ArenaPicture:
    blocks = (
        Block("t0", Kind.INPUT, 0, 100, 0, 1),
        Block(label, Kind.INTERMEDIATE, 100, 200, 1, 2),
        Block("scratch 0", Kind.SCRATCH, 300, 50, 2, 2),
        Block("t3", Kind.OUTPUT, 0, 100, 2, 2),
    )
    return ArenaPicture("m.tflite", 350, 50, blocks, ("inputs", "CONV_2D", "SOFTMAX"), 2)


def rects(svg: str, colour: str) -> list[dict[str, float]]:
    root = ElementTree.fromstring(svg)
    found = [r for r in root.iter(f"{SVG}rect") if r.get("fill") == colour and r.find(f"{SVG}title") is not None]
    return [{k: float(r.attrib[k]) for k in ("x", "y", "width", "height")} for r in found]


def test_blocks_lie_in_proportion_to_offset_size_and_life() -> None:
    svg = to_svg(draw(picture()))
    (entry,) = rects(svg, COLOURS[Kind.INPUT][0])
    (output,) = rects(svg, COLOURS[Kind.OUTPUT][0])
    (scratch,) = rects(svg, COLOURS[Kind.SCRATCH][0])
    (tail,) = rects(svg, PERSISTENT_COLOUR)
    assert entry["width"] == pytest.approx(2 * output["width"], abs=0.02)
    assert entry["height"] == pytest.approx(2 * scratch["height"], abs=0.02)
    assert entry["y"] == output["y"]
    assert tail["width"] == pytest.approx(3 * output["width"], abs=0.05)
    assert tail["y"] + tail["height"] == pytest.approx(scratch["y"], abs=0.02)
    assert output["x"] == pytest.approx(entry["x"] + entry["width"], abs=0.02)


def test_names_of_a_model_cannot_break_the_svg() -> None:
    svg = to_svg(draw(picture(HOSTILE)))
    ElementTree.fromstring(svg)
    assert "<script" not in svg
    assert "\x1b" not in svg
    assert "\\x1b[31m\\x0a\\u202e" in svg


def test_the_byte_axis_has_round_marks_and_the_peak_is_marked() -> None:
    texts = [t.text for t in ElementTree.fromstring(to_svg(draw(picture()))).iter(f"{SVG}text")]
    assert [t for t in texts if t and t.isdigit()] == ["0", "64", "128", "192", "256", "320", "384"]
    assert "peak" in texts
    assert "head 350 + tail 50 = 400 bytes used" in texts
    assert "1 CONV_2D" in texts


def test_a_large_tail_does_not_press_the_head_flat() -> None:
    cut = ArenaPicture("m", 300, 5_000, (Block("t0", Kind.INPUT, 0, 300, 0, 1),), ("inputs", "NEG"), 0)
    svg = to_svg(draw(cut))
    (entry,), (tail,) = rects(svg, COLOURS[Kind.INPUT][0]), rects(svg, PERSISTENT_COLOUR)
    assert entry["height"] == pytest.approx(3 * tail["height"], abs=0.05)
    texts = [t.text for t in ElementTree.fromstring(svg).iter(f"{SVG}text")]
    assert "tail, 5,000 bytes (not to scale)" in texts
    assert max(int(text) for text in texts if text and text.isdigit()) <= 300
    lines = [line.plain for line in picture_lines(cut, width=30, rows=8)]
    assert sum("▒" in line for line in lines[:8]) == 6
    assert lines[-1].endswith("persistent (tail), not to scale")


def test_a_model_of_many_steps_gets_numbers_instead_of_names() -> None:
    blocks = tuple(Block(str(i), Kind.INTERMEDIATE, i % 2 * 64, 64, i, i + 1) for i in range(2000))
    many = ArenaPicture("m", 128, 0, blocks, ("X",) * 2001, 0)
    texts = [t.text for t in ElementTree.fromstring(to_svg(draw(many))).iter(f"{SVG}text")]
    assert "100" in texts and "200" in texts
    assert not any(text and text.endswith(" X") for text in texts)


def test_png_and_svg_are_chosen_by_the_ending(tmp_path: Path) -> None:
    write_drawing(draw(picture()), tmp_path / "a.svg")
    assert (tmp_path / "a.svg").read_text(encoding="utf-8").startswith("<svg")
    with pytest.raises(UsageError, match=r"cannot be written as \.bmp") as caught:
        write_drawing(draw(picture()), tmp_path / "a.bmp")
    assert caught.value.remedy == "give a path that ends in .svg or .png"
    with pytest.raises(UsageError, match="cannot write"):
        write_drawing(draw(picture()), tmp_path / "no" / "a.svg")


def test_a_png_has_twice_the_size_of_the_drawing(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="PNG pictures need the extra [plot]")
    drawing = draw(picture(HOSTILE))
    write_drawing(drawing, tmp_path / "a.png")
    data = (tmp_path / "a.png").read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    assert int.from_bytes(data[16:20], "big") == 2 * drawing.width
    assert int.from_bytes(data[20:24], "big") == 2 * drawing.height


def test_without_matplotlib_the_remedy_names_the_extra_and_the_way_without(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    monkeypatch.setitem(sys.modules, "matplotlib.backends.backend_agg", None)
    with pytest.raises(MissingDependencyError) as caught:
        to_png(draw(picture()))
    assert caught.value.exit_code is ExitCode.ENVIRONMENT
    assert caught.value.remedy == (
        "pip install 'tflm-harness[plot]', or write the picture as .svg, which needs nothing"
    )


def test_the_terminal_shows_offset_and_time_without_colour() -> None:
    lines = [line.plain for line in picture_lines(picture(HOSTILE), width=24, rows=8)]
    assert lines == [
        "400 ┤╱╱╱╱╱╱╱╱╱╱╱╱╱╱╱╱╱╱",
        "    │            ░░░░░░",
        "    │      ████████████",
        "    │      ████████████",
        "200 ┤      ████████████",
        "    │      ████████████",
        "    │▒▒▒▒▒▒▒▒▒▒▒▒▓▓▓▓▓▓",
        "    │▒▒▒▒▒▒▒▒▒▒▒▒▓▓▓▓▓▓",
        "  0 └──────────────────",
        "     0 step",
        "  ▒▒ input   ▓▓ output   ██ intermediate   ░░ scratch   ╱╱ persistent (tail)",
    ]


def test_a_long_model_is_drawn_by_the_fullest_step_of_each_column() -> None:
    blocks = [Block(str(i), Kind.INTERMEDIATE, 0, 16, i, i) for i in range(5000)]
    blocks.append(Block("spike", Kind.SCRATCH, 16, 400, 3333, 3333))
    lines = picture_lines(ArenaPicture("m", 416, 0, tuple(blocks), ("X",) * 5000, 3333), width=80)
    assert all(len(line.plain) <= 80 for line in lines)
    assert sum("░" in line.plain for line in lines[:-1]) >= 15


def test_an_empty_arena_is_said_to_be_empty() -> None:
    assert [line.plain for line in picture_lines(ArenaPicture("m", 0, 0, (), (), 0))] == ["the arena is empty"]
    ElementTree.fromstring(to_svg(draw(ArenaPicture("m", 0, 0, (), (), 0))))
