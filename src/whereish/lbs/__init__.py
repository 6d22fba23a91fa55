"""Using a location service without telling it where one is."""
