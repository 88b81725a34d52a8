"""What is looked for before re2 is asked: literals, and how automata share them."""
