"""Pure arithmetic: intervals, back-off, states, health, who is due."""
