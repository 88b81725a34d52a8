"""Redis tables: one script changes state, input offset and sends of a partition, or none of them."""
