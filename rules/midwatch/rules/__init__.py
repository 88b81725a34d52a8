"""What is looked for: rules, their compiler and matcher, detectors, and packs of YAML."""
