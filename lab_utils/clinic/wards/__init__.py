"""The programs of the clinic, each with its chart: as they stand here they are right."""
