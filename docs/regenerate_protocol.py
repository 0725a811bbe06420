"""Writes docs/protocol.md from the description in harness/wire: ``python docs/regenerate_protocol.py``."""

from __future__ import annotations

from pathlib import Path

from harness.wire import fields, frame, messages
from harness.wire.description import EnumDescription, FieldDescription, ProtocolDescription, RecordDescription, describe

PAGE = Path(__file__).parent / "protocol.md"


def render() -> str:
    """The whole page."""
    protocol = describe()
    requests = [record for record in protocol.messages if record.number is not None and record.number < 0x80]
    by_number = {record.number: record for record in protocol.messages}
    parts = [
        f"# Protocol {protocol.major}.{protocol.minor}\n",
        "Made from `harness/wire/` by `docs/regenerate_protocol.py`; the firmware's C header is rendered from the same "
        "description.\n",
        *(_paragraph(doc) for doc in (messages.__doc__, frame.__doc__, fields.__doc__)),
        _numbers(protocol),
        "## Requests and answers\n",
    ]
    for request in requests:
        assert request.number is not None
        parts += [_record(request), _record(by_number[request.number | 0x80])]
    parts += ["## Sent at any request\n"]
    parts += [_record(by_number[number]) for number in (0xFE, 0xFF)]
    parts += ["## Rows\n", *(_record(row) for row in protocol.rows)]
    parts += ["## Enumerations\n", *(_enum(enum) for enum in protocol.enums)]
    return "\n".join(parts).rstrip() + "\n"


def _paragraph(doc: str | None) -> str:
    """A docstring as Markdown: literal blocks (``::``) as code."""
    lines, out, in_code = (doc or "").strip().splitlines(), [], False
    for line in lines:
        if in_code and line and not line.startswith("    "):
            out[-1:] = ["```", ""]
            in_code = False
        if line.endswith("::"):
            out += [line[:-1], "", "```"]
            in_code = True
            continue
        if in_code and not line and out[-1] == "```":
            continue
        out.append(line.removeprefix("    ") if in_code else line.replace("``", "`"))
    return "\n".join(out) + "\n"


def _numbers(protocol: ProtocolDescription) -> str:
    rows = [f"| largest payload | {protocol.max_payload_bytes} bytes |"]
    rows += [f"| `{name}` | {value:#x} |" for name, value in protocol.constants.items()]
    return "| | |\n|---|---|\n" + "\n".join(rows) + "\n"


def _record(record: RecordDescription) -> str:
    number = "" if record.number is None else f" ({record.number:#04x})"
    doc = " ".join(record.doc.replace("``", "`").split())
    if doc.startswith(f"{record.name}("):  # dataclass's own: nothing was written
        doc = ""
    text = f"### {record.name}{number}\n" + (f"\n{doc}\n" if doc else "")
    if record.fields:
        text += "\n| field | type |\n|---|---|\n" + "\n".join(_field(field) for field in record.fields) + "\n"
    return text


def _field(field: FieldDescription) -> str:
    kinds = {
        "scalar": field.c_type + (f", {field.enum}" if field.enum else ""),
        "bytes": f"{field.count} bytes",
        "text": f"text, {field.count} bytes",
        "blob": f"count byte, then up to {field.count} bytes",
        "array": f"count byte, then up to {field.count} {field.c_type}",
        "rows": f"count byte, then up to {field.count} {field.c_type}",
    }
    return f"| `{field.name}` | {kinds[field.kind]} |"


def _enum(enum: EnumDescription) -> str:
    doc = " ".join(enum.doc.replace("``", "`").split())
    values = ", ".join(f"{name} {value}" for name, value in enum.values)
    return f"### {enum.name}\n" + (f"\n{doc}\n" if doc and not doc.startswith("An enum") else "") + f"\n{values}\n"


if __name__ == "__main__":
    PAGE.write_text(render(), encoding="utf-8")
