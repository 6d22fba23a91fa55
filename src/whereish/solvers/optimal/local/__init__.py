"""The interior point on the places near each output, with the rest of every column slaved."""
