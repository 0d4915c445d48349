"""What the cells of a notebook show: figures with their kind, plots, drawings, sliders, colours."""
