"""A drawing of rectangles, lines and texts, in pixels from the top left, written as SVG or PNG."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from harness.errors import MissingDependencyError, UsageError

FONT = "DejaVu Sans, Helvetica, Arial, sans-serif"


@dataclass(frozen=True, slots=True)
class Rect:
    """``tip`` shows when a reader of the SVG points at it."""

    x: float
    y: float
    width: float
    height: float
    fill: str
    stroke: str = "#ffffff"
    tip: str = ""
    opacity: float = 1.0


@dataclass(frozen=True, slots=True)
class Line:
    x1: float
    y1: float
    x2: float
    y2: float
    colour: str = "#999999"
    width: float = 1.0
    dashed: bool = False


@dataclass(frozen=True, slots=True)
class Text:
    """``anchor`` is start, middle or end; ``turn_degrees`` is clockwise around the point."""

    x: float
    y: float
    text: str
    size: float = 12.0
    anchor: str = "start"
    colour: str = "#222222"
    bold: bool = False
    turn_degrees: float = 0.0


@dataclass(frozen=True, slots=True)
class Drawing:
    """Shapes in the order in which they are painted, on white."""

    width: int
    height: int
    title: str
    shapes: tuple[Rect | Line | Text, ...]


def write_drawing(drawing: Drawing, path: Path) -> None:
    """Write ``path`` as its ending says: ``.svg``, or ``.png`` (which needs matplotlib)."""
    match path.suffix.lower():
        case ".svg":
            content = to_svg(drawing).encode("utf-8")
        case ".png":
            content = to_png(drawing)
        case other:
            raise UsageError(f"a picture cannot be written as {other or 'a file without ending'}", remedy=_ENDINGS)
    try:
        path.write_bytes(content)
    except OSError as exc:
        raise UsageError(
            f"cannot write {path}: {exc.strerror or exc}", remedy="give a path that can be written"
        ) from exc


_ENDINGS = "give a path that ends in .svg or .png"


def to_svg(drawing: Drawing) -> str:
    """The drawing as an SVG document. Foreign text is escaped by the XML writer."""
    root = ElementTree.Element(
        "svg",
        xmlns="http://www.w3.org/2000/svg",
        width=str(drawing.width),
        height=str(drawing.height),
        viewBox=f"0 0 {drawing.width} {drawing.height}",
        role="img",
    )
    root.set("font-family", FONT)
    ElementTree.SubElement(root, "title").text = drawing.title
    ElementTree.SubElement(root, "rect", width="100%", height="100%", fill="#ffffff")
    for shape in drawing.shapes:
        _svg_shape(root, shape)
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode") + "\n"


def _svg_shape(root: ElementTree.Element, shape: Rect | Line | Text) -> None:
    match shape:
        case Rect(x, y, width, height, fill, stroke, tip, opacity):
            at = {"x": _number(x), "y": _number(y), "width": _number(width), "height": _number(height)}
            element = ElementTree.SubElement(root, "rect", at, fill=fill, stroke=stroke)
            element.set("stroke-width", "0.7")
            if opacity < 1.0:
                element.set("fill-opacity", _number(opacity))
            if tip:
                ElementTree.SubElement(element, "title").text = tip
        case Line(x1, y1, x2, y2, colour, width, dashed):
            at = {"x1": _number(x1), "y1": _number(y1), "x2": _number(x2), "y2": _number(y2)}
            element = ElementTree.SubElement(root, "line", at, stroke=colour)
            element.set("stroke-width", _number(width))
            if dashed:
                element.set("stroke-dasharray", "5 4")
        case Text(x, y, text, size, anchor, colour, bold, turn):
            element = ElementTree.SubElement(root, "text", x=_number(x), y=_number(y), fill=colour)
            element.set("font-size", _number(size))
            element.set("text-anchor", anchor)
            if bold:
                element.set("font-weight", "bold")
            if turn:
                element.set("transform", f"rotate({_number(turn)} {_number(x)} {_number(y)})")
            element.text = text


def _number(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")


def to_png(drawing: Drawing) -> bytes:
    """The drawing as PNG at twice its size. Raises MissingDependencyError without matplotlib."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as exc:
        raise MissingDependencyError(
            "a PNG picture needs matplotlib, which is not installed",
            remedy="pip install 'tflm-harness[plot]', or write the picture as .svg, which needs nothing",
        ) from exc
    from io import BytesIO

    figure = Figure(figsize=(drawing.width / 100, drawing.height / 100), dpi=200)
    FigureCanvasAgg(figure)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_xlim(0, drawing.width)
    axes.set_ylim(drawing.height, 0)
    axes.axis("off")
    for order, shape in enumerate(drawing.shapes, start=1):
        _png_shape(axes, shape, order)
    stream = BytesIO()
    figure.savefig(stream, format="png", facecolor="#ffffff", metadata={"Software": None})
    return stream.getvalue()


#: One SVG pixel in points at 100 pixels per inch.
_POINTS = 0.72


def _png_shape(axes: object, shape: Rect | Line | Text, order: int) -> None:
    from matplotlib.axes import Axes
    from matplotlib.patches import Rectangle

    assert isinstance(axes, Axes)
    match shape:
        case Rect(x, y, width, height, fill, stroke, _, opacity):
            patch = Rectangle((x, y), width, height, facecolor=fill, edgecolor=stroke, linewidth=0.5, alpha=opacity)
            patch.set_zorder(order)
            axes.add_patch(patch)
        case Line(x1, y1, x2, y2, colour, width, dashed):
            style = "--" if dashed else "-"
            axes.plot([x1, x2], [y1, y2], color=colour, linewidth=width * _POINTS, linestyle=style, zorder=order)
        case Text(x, y, text, size, anchor, colour, bold, turn):
            axes.text(
                x,
                y,
                text.replace("$", r"\$"),
                fontsize=size * _POINTS,
                color=colour,
                ha={"start": "left", "middle": "center", "end": "right"}[anchor],
                va="baseline",
                weight="bold" if bold else "normal",
                rotation=-turn,
                rotation_mode="anchor",
                zorder=order,
            )
