"""Rules: their model, reader, compiler and matcher, the detectors, and the shipped packs of YAML."""
