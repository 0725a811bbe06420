"""On-device harness for TensorFlow Lite Micro: plan, measure and explain the tensor arena."""

__version__ = "0.1.0"
