"""Delivery: brings what the fold wants told to the channels, at least once, each channel on its own."""
