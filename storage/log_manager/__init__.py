"""All logs of a broker: directories, upkeep, deletion, moves between directories."""
