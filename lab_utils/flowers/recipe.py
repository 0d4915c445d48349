"""The numbers that make the flowers model what it is, shared by its TensorFlow and Keras forms."""

# Filters of the stages, each on half the width and height of the last. Few in the first, where each is work
# at many positions; from there on enough to fill the 128 columns of a TPU's matrix unit.
WIDTHS = (16, 128, 128, 256)
LABEL_SMOOTHING = 0.1
WEIGHT_DECAY = 5e-4
DROPOUT = 0.3
MOMENTUM = 0.9
STATISTICS_MOMENTUM = 0.97  # of the running mean and variance in batch normalisation
WARMUP = 0.1  # share of the steps over which the learning rate rises
