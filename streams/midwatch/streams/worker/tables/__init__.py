"""Redis tables: state, input offset and sends of a partition change in one script, or not at all."""
