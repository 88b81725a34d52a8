"""User rules and policies: read them, admit them, bundle them and put the bundle in force."""
