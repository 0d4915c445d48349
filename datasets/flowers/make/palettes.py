"""The colours of petals, and how often each class of flower bears them."""

# Petals, from the base to the tip. The classes share these, as real flowers do.
WHITE = ((0.80, 0.84, 0.74), (0.97, 0.97, 0.95), (0.99, 0.99, 0.99))
CREAM = ((0.86, 0.82, 0.48), (0.97, 0.93, 0.74), (0.99, 0.97, 0.86))
YELLOW = ((0.86, 0.62, 0.04), (0.98, 0.82, 0.08), (1.00, 0.90, 0.22))
ORANGE = ((0.80, 0.36, 0.03), (0.97, 0.58, 0.08), (1.00, 0.70, 0.20))
RED = ((0.42, 0.02, 0.05), (0.78, 0.06, 0.09), (0.90, 0.16, 0.16))
BRONZE = ((0.34, 0.08, 0.04), (0.66, 0.22, 0.06), (0.88, 0.50, 0.12))
SALMON = ((0.88, 0.50, 0.26), (0.95, 0.55, 0.45), (0.98, 0.72, 0.62))
PINK = ((0.82, 0.40, 0.56), (0.94, 0.56, 0.70), (0.98, 0.78, 0.85))
MAGENTA = ((0.50, 0.04, 0.28), (0.80, 0.10, 0.46), (0.92, 0.34, 0.62))
PURPLE = ((0.26, 0.10, 0.38), (0.48, 0.24, 0.64), (0.70, 0.52, 0.84))

# How often each class bears them.
PALETTES = {
    "daisy": {WHITE: 7, CREAM: 2, YELLOW: 4, PINK: 3, PURPLE: 2, ORANGE: 2, MAGENTA: 1},
    "dandelion": {YELLOW: 6, ORANGE: 2, CREAM: 2},
    "roses": {
        RED: 4,
        PINK: 4,
        WHITE: 4,
        YELLOW: 4,
        SALMON: 2,
        ORANGE: 3,
        MAGENTA: 2,
        CREAM: 2,
        PURPLE: 1,
    },
    "sunflowers": {YELLOW: 7, ORANGE: 3, BRONZE: 2, CREAM: 3, WHITE: 2, RED: 1},
    "tulips": {
        RED: 4,
        YELLOW: 4,
        WHITE: 4,
        PINK: 3,
        MAGENTA: 2,
        PURPLE: 3,
        ORANGE: 3,
        CREAM: 2,
        SALMON: 1,
    },
}
