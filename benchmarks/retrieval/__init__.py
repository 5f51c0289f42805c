"""Quality of search on labelled data sets, through the engine's public methods."""
