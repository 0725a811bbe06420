"""The rules of the pre-flight checklist: each module yields findings about one side of a model."""
