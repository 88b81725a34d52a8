"""Ships the output of a training that is piped into midwatch: through a spool, by a process of its own."""
