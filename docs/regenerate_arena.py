"""Writes the numbers and the picture of ``arena.md`` anew: ``python docs/regenerate_arena.py``.

A test holds the page to what the tool says.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path

from harness.abi import abi_named
from harness.model.reader import read_model
from harness.plan.arena import plan_arena
from harness.plan.arenas import shared_arena, two_arenas
from harness.plan.better import plan_offline
from harness.plan.comparison import PLANNERS, alignment_costs, compare
from harness.plan.greedy import greedy
from harness.plan.overview import Overview, overview
from harness.plan.target import target_for
from harness.report.arena_picture import draw
from harness.report.drawing import to_svg
from harness.report.plan_report import arena_picture
from harness.units import safe_text
from harness.whatif.answer import Answer

DOCS = Path(__file__).resolve().parent
PAGE = DOCS / "arena.md"
PICTURE = DOCS / "arena-kws.svg"

#: What stands behind TFLM's categories and this tool's own.
CATEGORY_WORDS = {
    "allocator objects": "`SingleArenaBufferAllocator`, the planner, `MicroAllocator`, the allocator of parameters",
    "subgraph structures": "one `SubgraphAllocations` per subgraph",
    "TfLiteEvalTensor data": "one `TfLiteEvalTensor` for every tensor of the model, weights too",
    "NodeAndRegistration struct": "one per operator",
    "operator parameters": "strides, paddings, activations, as structs",
    "Persistent buffer data": "what kernels keep: data, factors per channel; lists of inputs and outputs",
    "scratch buffer handles": "where each scratch buffer lies",
    "Persistent TfLiteTensor data": "the `TfLiteTensor` that `input(i)` and `output(i)` return",
    "Persistent TfLiteTensor quantization data": "their scales and zero points",
}


def example(name: str, core: str = "cortex-m4", kernels: str | None = None, interpreter: str | None = None) -> Overview:
    model = read_model(DOCS.parent / "examples" / f"{name}.tflite")
    return overview(model, plan_arena(model, target_for(core, kernels=kernels, interpreter=interpreter)))


def table(header: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    """A Markdown table; numbers to the right."""
    header, rows = list(header), [list(row) for row in rows]
    numeric = [all(isinstance(row[column], int) for row in rows) for column in range(len(header))]
    lines = ["| " + " | ".join(header) + " |", "|" + "|".join("---:" if right else "---" for right in numeric) + "|"]
    lines += ["| " + " | ".join(f"{v:,}" if isinstance(v, int) else str(v) for v in row) + " |" for row in rows]
    return "\n".join(lines)


def headline() -> str:
    plan = example("kws").plan
    rows: list[tuple[str, int, str]] = [
        ("head", plan.head_bytes, "tensors and scratch buffers, reused over time"),
        ("tail", plan.tail_bytes, "what TFLM keeps for ever"),
        ("used", plan.used_bytes, "`arena_used_bytes()`"),
        ("min, to the byte", plan.min_exact_bytes, "smallest size that works"),
        ("min", plan.min_bytes, "the same as a multiple of 16: the size to write down"),
    ]
    return table(("", "bytes", ""), rows)


def head() -> str:
    """One row per operator: what it reads, writes and needs as scratch, and all that is alive then."""
    page = example("kws")
    view = page.view
    rows: list[tuple[object, ...]] = []
    for at, step in enumerate(view.steps):
        if step.operator is None:
            continue
        size = {request.tensor: request for request in view.requests if request.tensor is not None}
        read = sum(size[t].requested_bytes for t in step.operator.inputs if t in size)
        written = sum(size[t].requested_bytes for t in step.operator.outputs if t in size)
        scratch = sum(
            r.requested_bytes for r in view.requests if r.tensor is None and r.operator == step.operator.index
        )
        alive = [r for r in view.requests if r.first_use <= at <= r.last_use]
        padding = sum(r.size_bytes - r.requested_bytes for r in alive)
        rows.append((at, step.label, read, written, scratch, padding, sum(r.size_bytes for r in alive)))
    return table(("step", "operator", "input", "output", "scratch", "padding to 16", "alive"), rows)


def placements() -> str:
    view = example("kws").view
    rows = [
        (view.name(index), view.use(index).value, f"{r.first_use}–{r.last_use}", view.offsets[index], r.requested_bytes)
        for index, r in enumerate(view.requests)
    ]
    return table(("buffer", "for", "alive in steps", "offset", "bytes"), rows)


def tail() -> str:
    plan = example("kws").plan
    rows: list[tuple[object, ...]] = []
    for name in dict.fromkeys(item.category.value for item in plan.tail):
        items = [item for item in plan.tail if item.category.value == name]
        rows.append((name, len(items), sum(item.size_bytes for item in items), CATEGORY_WORDS[name]))
    rows.append(("alignment padding", len([i for i in plan.tail if i.padding_bytes]), plan.padding_bytes, "see below"))
    rows.append(("**tail**", len(plan.tail), plan.tail_bytes, ""))
    return table(("", "allocations", "bytes", ""), rows)


def stage_needs() -> str:
    pages = {name: example(name) for name in ("kws", "hello")}
    rows: list[tuple[object, ...]] = []
    for kws, hello in zip(pages["kws"].stages, pages["hello"].stages, strict=True):
        rows.append((kws.kind.value, kws.needed_bytes, hello.needed_bytes, safe_text(hello.step.label)))
    rows.append(("**min**", pages["kws"].plan.min_exact_bytes, pages["hello"].plan.min_exact_bytes, ""))
    rows.append(("used", pages["kws"].plan.used_bytes, pages["hello"].plan.used_bytes, ""))
    return table(("stage", "kws.tflite", "hello.tflite", "fails first below, in hello.tflite"), rows)


def targets() -> str:
    """The same model on other builds."""
    choices = [
        ("cortex-m4", "reference", "plain"),
        ("cortex-m0plus", "cmsis_nn", "plain"),
        ("cortex-m4", "cmsis_nn", "plain"),
        ("cortex-m55", "cmsis_nn", "plain"),
        ("cortex-m4", "cmsis_nn", "recording"),
        ("cortex-m4", "cmsis_nn", "preserve_all"),
        ("host", "reference", "recording"),
    ]
    rows = []
    for core, kernels, interpreter in choices:
        plan = example("kws", core, kernels, interpreter).plan
        rows.append(
            (core, kernels, interpreter, plan.head_bytes, plan.tail_bytes, plan.used_bytes, plan.min_exact_bytes)
        )
    return table(("core", "kernels", "interpreter", "head", "tail", "used", "min"), rows)


def residues() -> str:
    plan = example("kws").plan
    sizes = plan.used_by_size_residue16()
    pairs = [(residue, used) for residue, used in enumerate(sizes)]
    return table(("size mod 16", *(str(residue) for residue, _ in pairs)), [("used", *(used for _, used in pairs))])


def planners() -> str:
    page = example("residual")
    comparison = compare(page.view.requests, PLANNERS)
    rows: list[tuple[object, ...]] = [
        (result.planner, result.head_bytes, f"{result.ratio:.3f}", "yes" if result.optimal else "")
        for result in comparison.results
    ]
    rows.append(("lower bound", comparison.bound_bytes, "1.000", ""))
    return table(("planner", "head", "ratio to the bound", "proven smallest"), rows)


def offline() -> str:
    rows = []
    for core, kernels in (("cortex-m4", "cmsis_nn"), ("host", "reference")):
        page = example("residual", core, kernels)
        better = plan_offline(page.view.model, page.plan).plan
        sizes = (page.plan.head_bytes, better.head_bytes, page.plan.min_exact_bytes, better.min_exact_bytes)
        rows.append((f"residual.tflite, {core}", *sizes))
    return table(("", "head", "with the offline plan", "min", "with the offline plan"), rows)


def alignments() -> str:
    costs = alignment_costs(example("residual").view.requests, greedy)
    rows = [(c.alignment, c.head_bytes, c.padding_bytes, c.peak_padding_bytes) for c in costs]
    return table(("alignment", "head", "padding of all buffers", "padding at the peak"), rows)


def split() -> str:
    rows = []
    for name in ("kws", "hello", "residual", "svdf"):
        plan = example(name).plan
        two = two_arenas(plan, abi_named("ilp32"))
        rows.append((f"{name}.tflite", plan.min_exact_bytes, two.nonpersistent_bytes, two.persistent_bytes))
    return table(("model", "one arena: min", "non-persistent (fast memory)", "persistent (may be slower)"), rows)


def shared() -> str:
    pages = [example(name).plan for name in ("kws", "hello", "residual")]
    together = shared_arena(pages)
    rows: list[tuple[object, ...]] = [
        (Path(plan.model_path).name, plan.head_bytes, plan.tail_bytes, plan.min_exact_bytes) for plan in pages
    ]
    apart = sum(plan.min_exact_bytes for plan in pages)
    rows.append(("in arenas apart", sum(p.head_bytes for p in pages), sum(p.tail_bytes for p in pages), apart))
    rows.append(("**together**", together.head_bytes, together.tail_bytes, together.min_exact_bytes))
    return table(("", "head", "tail", "min"), rows)


BLOCKS: dict[str, Callable[[], str]] = {
    "headline": headline,
    "head": head,
    "placements": placements,
    "tail": tail,
    "stages": stage_needs,
    "targets": targets,
    "residues": residues,
    "planners": planners,
    "offline": offline,
    "alignments": alignments,
    "split": split,
    "shared": shared,
}


def filled(page: str) -> str:
    """The page with every block between ``<!-- tool: NAME -->`` and ``<!-- end -->`` made anew."""

    def block(match: re.Match[str]) -> str:
        return f"<!-- tool: {match[1]} -->\n\n{BLOCKS[match[1]]()}\n\n<!-- end -->"

    return re.sub(r"<!-- tool: (\w+) -->.*?<!-- end -->", block, page, flags=re.DOTALL)


def picture() -> str:
    return to_svg(draw(arena_picture(Answer(example("kws")))))


if __name__ == "__main__":
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    PICTURE.write_text(picture(), encoding="utf-8")
