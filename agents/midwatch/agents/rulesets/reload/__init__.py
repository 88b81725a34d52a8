"""Hot reload: a running watch changes to another bundle of rules and policies, named by its hash."""
