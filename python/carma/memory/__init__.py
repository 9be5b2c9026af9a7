"""GPU memory of a training script, told without a GPU."""
