"""What makes the course and grades it: build, grade, slides, guide."""
