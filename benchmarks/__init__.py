"""What is fast and how fast: each bench measures two things in one run and gives their ratio."""
