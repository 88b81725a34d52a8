"""What shows that a saved log's last failure line did not end its job."""
