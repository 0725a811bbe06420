"""The reference: what LiteRT (tflite-runtime or ai-edge-litert) computes for the same inputs, in its own process."""
