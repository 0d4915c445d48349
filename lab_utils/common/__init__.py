"""The ground: files, source lines, names, the end of a command. Nothing here knows TensorFlow or a lab."""
