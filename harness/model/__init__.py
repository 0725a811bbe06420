"""The model: facts read from the flatbuffer, every index already validated."""
