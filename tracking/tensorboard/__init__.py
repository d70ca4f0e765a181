"""TensorBoard itself on the event files of one run: a confined process, shown in a sandboxed frame."""
