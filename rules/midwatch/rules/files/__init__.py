"""Rule files in our own form: read, checked, written."""
