"""The greys of the figures, which the HTML page turns into variables that follow its colour scheme."""

INK = "#1a1c1e"
MUTED = "#5c6268"
GRID = "#d5d9dd"
