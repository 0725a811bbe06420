"""The plan: the whole arena predicted from the model, for one (TFLM commit, ABI, core, kernel set)."""
