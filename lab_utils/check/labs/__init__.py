"""What is checked: a module or a folder for each lab, which enters its TODOs with `todo`."""
