"""Reports: records in, text and pictures out. Reads records only."""
