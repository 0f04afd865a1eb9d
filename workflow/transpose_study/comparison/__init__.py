"""Runs side by side: archives, results folders and published studies, read alike, compared cell by cell."""
