"""What kernels share: compiled functions and where they are kept, keys and events as columns, the places of detections.

Models of detection import this package and never one another."""
