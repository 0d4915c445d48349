"""The colours and marks of every page, plot and message of a check.

Dark enough for text on white (contrast of 4.5 to 1 or more), and the same everywhere: green for right and
ready, red for wrong and errors, amber for warnings and what cannot be checked, blue for notes.
"""

# Areas and bars, which show on white and on JupyterLab's dark theme (3 to 1 or more on both).
FILLED, BAR = "#2e8b4f", "#4a7fc1"
RIGHT, WRONG, UNSURE, NOTE = "#1e6b34", "#b3261e", "#8a5a00", "#2f5f9e"
NEUTRAL, FAINT, SECOND = "#6e7781", "#c9ced6", "#c77700"
TEXT = "#1f2328"
# The labs' drawings, on white: their ink, and fills on which it reads.
INK, CORE, HOST, DATA, IDLE = "#333333", "#f2b36b", "#cfe3d4", "#cfd8ea", "#ffffff"
# The parts of a core's memory in the dry run's bars.
MEMORY = {"arguments": "#3f72af", "temporaries": "#b3611a", "outputs": "#278277", "code": "#8d62a8"}
