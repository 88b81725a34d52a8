"""Hot reload: rules and policies as one bundle by its hash, taken up while the watch runs."""
