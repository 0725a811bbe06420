"""Board types as data: the record, the catalogue of files, and the rig and lab files."""
