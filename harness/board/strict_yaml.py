"""Reads YAML strictly: two equal keys in one mapping are an error, not a silent loss of the first."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from harness.bounded_file import read_bounded
from harness.errors import ConfigError


def load_yaml(path: Path, error: type[ConfigError] = ConfigError) -> Any:
    """The plain values of a YAML file. Raises ``error`` with file, place and remedy."""
    import yaml

    class UniqueKeys(yaml.SafeLoader):
        """PyYAML keeps the last of two equal keys."""

        def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
            seen: set[Any] = set()
            for key_node, _ in node.value:
                key = self.construct_object(key_node, deep=True)
                if key in seen:
                    line = key_node.start_mark.line + 1
                    raise error(f"{path}: key {key!r} stands twice (line {line})", remedy="keep one of them")
                seen.add(key)
            return super().construct_mapping(node, deep)

    try:
        return yaml.load(read_bounded(path).decode("utf-8"), UniqueKeys)
    except OSError as exc:
        raise error(f"{path}: {exc.strerror}", remedy="check the path") from exc
    except UnicodeDecodeError as exc:
        raise error(f"{path}: not UTF-8: {exc.reason} at byte {exc.start}", remedy="save the file as UTF-8") from exc
    except (yaml.YAMLError, RecursionError, TypeError, ValueError) as exc:
        raise error(f"{path}: not YAML: {exc}", remedy="check the indentation and the quotes") from exc
